//! Takes ownership of descriptors that the supervisor left open. This module has the only `unsafe`
//! code of the crate.
//!
//! No function of the standard library, and no safe function elsewhere, turns the number of an
//! inherited descriptor into its owner. Only the contract between the supervisor and the process
//! ensures that the descriptor has no other owner. The contract is `sd_listen_fds(3)`.

use std::io::{self, ErrorKind};
use std::os::fd::{FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::Name;

/// Returns the descriptors with their names from the supervisor, in the order of their numbers. The
/// result is empty if there is no supervisor, or if the descriptors are meant for another process.
pub(crate) fn take() -> io::Result<Vec<(OwnedFd, String)>> {
    static TAKEN: AtomicBool = AtomicBool::new(false);
    // `listen_fds` checks LISTEN_PID and that every number is open, and sets CLOEXEC. The names are
    // requested only after that, because the library compares the number of names even if they are
    // meant for another process.
    if sd_notify::listen_fds()?.len() == 0 {
        return Ok(Vec::new());
    }
    let listed = sd_notify::listen_fds_with_names()?;
    // The count is checked before any descriptor is taken, so that a wrong count affects no
    // descriptor of our own.
    if listed.len() > Name::ALL.len() {
        let why = format!("the supervisor passed {} sockets, and at most 3 are used", listed.len());
        return Err(io::Error::new(ErrorKind::InvalidInput, why));
    }
    if TAKEN.swap(true, Ordering::Relaxed) {
        return Err(io::Error::other("the sockets of the supervisor were taken before"));
    }
    let owned = |(number, name)| {
        #[allow(unsafe_code, reason = "only the supervisor's contract says who owns a number")]
        // SAFETY: The descriptor is open, because `listen_fds_with_names` has just read its flags.
        // It has no other owner: LISTEN_PID is this process, so the supervisor has opened 3 up to 3
        // + LISTEN_FDS before our first instruction and left them to us (`sd_listen_fds(3)`). No
        // code in this process closes a descriptor that it does not own, so none of these numbers
        // can have been reused since. `TAKEN` lets no second call get here.
        let descriptor = unsafe { OwnedFd::from_raw_fd(number) };
        (descriptor, name)
    };
    Ok(listed.map(owned).collect())
}
