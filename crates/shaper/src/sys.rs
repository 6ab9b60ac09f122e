//! The one system call that neither the standard library nor `socket2` nor `rustix` offers.
#![allow(unsafe_code, reason = "setsockopt(2) of SO_MAX_PACING_RATE, which no library has")]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// TCP sends at most so many bytes a second on this connection; `u64::MAX` lifts that.
pub(crate) fn set_max_pacing_rate(socket: BorrowedFd<'_>, rate: u64) -> io::Result<()> {
    let (level, name) = (libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE);
    // SAFETY: the descriptor is borrowed, so it is open for the call. The kernel reads as many bytes
    // as it is told, `size_of::<u64>()`, from `rate`, which lives on this frame; it writes none.
    let result = unsafe {
        let value = (&raw const rate).cast();
        libc::setsockopt(socket.as_raw_fd(), level, name, value, size_of::<u64>() as u32)
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
