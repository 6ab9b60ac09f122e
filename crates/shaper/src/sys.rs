//! The only system call of this crate that neither the standard library nor `socket2` nor `rustix`
//! provides.
#![allow(unsafe_code, reason = "setsockopt(2) of SO_MAX_PACING_RATE, which no library has")]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Limits the rate at which TCP sends on a connection to `rate` bytes per second. `u64::MAX`
/// removes the limit.
pub(crate) fn set_max_pacing_rate(socket: BorrowedFd<'_>, rate: u64) -> io::Result<()> {
    let (level, name) = (libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE);
    // SAFETY: the descriptor is borrowed, so it is open during the call. The kernel reads
    // `size_of::<u64>()` bytes from `rate`, which lives on this frame, and writes none.
    let result = unsafe {
        let value = (&raw const rate).cast();
        libc::setsockopt(socket.as_raw_fd(), level, name, value, size_of::<u64>() as u32)
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
