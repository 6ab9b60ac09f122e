//! Descriptors that the supervisor left open become owned. The only `unsafe` of this crate.
//!
//! Nothing in the standard library, and nothing safe elsewhere, turns the number of an inherited
//! descriptor into an owner of it: only whoever knows the contract between supervisor and process
//! can say that nobody else owns it. The contract is `sd_listen_fds(3)`.

use std::io::{self, ErrorKind};
use std::os::fd::{FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::Name;

/// The descriptors and the names that the supervisor gave them, in the order of their numbers;
/// none if there is no supervisor, or if they are meant for another process.
pub(crate) fn take() -> io::Result<Vec<(OwnedFd, String)>> {
    static TAKEN: AtomicBool = AtomicBool::new(false);
    // Checks LISTEN_PID, that every number is open, and sets CLOEXEC. The names are asked for
    // only then: the library compares their number even if they are meant for another process.
    if sd_notify::listen_fds()?.len() == 0 {
        return Ok(Vec::new());
    }
    let listed = sd_notify::listen_fds_with_names()?;
    // Before any is taken, so that a count that is wrong touches no descriptor of our own.
    if listed.len() > Name::ALL.len() {
        let why = format!("the supervisor gave {} sockets, at most 3 have a use", listed.len());
        return Err(io::Error::new(ErrorKind::InvalidInput, why));
    }
    if TAKEN.swap(true, Ordering::Relaxed) {
        return Err(io::Error::other("the supervisor's sockets have been taken before"));
    }
    let owned = |(number, name)| {
        #[allow(unsafe_code, reason = "only the supervisor's contract says who owns a number")]
        // SAFETY: the descriptor is open: `listen_fds_with_names` has just read its flags. And
        // nobody else owns it: LISTEN_PID is this process, so the supervisor has opened 3 up to
        // 3 + LISTEN_FDS before our first instruction and left them to us (`sd_listen_fds(3)`);
        // nothing in this process closes a descriptor that it does not own, so none of these
        // numbers can have been given to something else since; and `TAKEN` lets no second call
        // get here.
        let descriptor = unsafe { OwnedFd::from_raw_fd(number) };
        (descriptor, name)
    };
    Ok(listed.map(owned).collect())
}
