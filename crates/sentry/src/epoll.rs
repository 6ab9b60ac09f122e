//! The epoll set of the process, and whether its number still means it.
//!
//! A program may close every descriptor that it has (`closefrom`, a daemon that starts too late),
//! ours with them. The number of our set may be another file's from then on, and that other file
//! an epoll set too, of a runtime: to add to it, to wait on it or to close it would be to meddle
//! with what is not ours. So the set holds a guard, a socket of which nothing ever comes. Its
//! cookie tells whether the guard's number still means the guard, and as nobody but us adds the
//! guard to anything, a set that has it is ours.

use std::io;
use std::os::fd::{AsRawFd, IntoRawFd, RawFd};

use crate::sys::{self, Flags};
use crate::table::Key;

/// By its numbers: it lives as long as the process, or until the program closes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Set {
    pub(crate) epoll: RawFd,
    pub(crate) guard: RawFd,
    /// The guard's.
    pub(crate) cookie: u64,
}

/// No watch: there is no descriptor below 0.
const OF_THE_GUARD: Key = Key { fd: -1, generation: 0 };

impl Set {
    pub(crate) fn new() -> io::Result<Self> {
        let (epoll, guard) = (sys::epoll_create()?, sys::silent_socket()?);
        let key = OF_THE_GUARD.into();
        sys::epoll_add(epoll.as_raw_fd(), guard.as_raw_fd(), key, Flags::EDGE)?;
        let cookie = sys::cookie_of(guard.as_raw_fd());
        Ok(Self { epoll: epoll.into_raw_fd(), guard: guard.into_raw_fd(), cookie })
    }

    fn has_its_guard(self) -> bool {
        sys::cookie_of(self.guard) == self.cookie
    }

    /// Whether both numbers still mean what they meant. May be asked in the child of a fork.
    pub(crate) fn is_ours(self) -> bool {
        let key = OF_THE_GUARD.into();
        self.has_its_guard() && sys::epoll_change(self.epoll, self.guard, key, Flags::EDGE).is_ok()
    }

    /// Closes what is ours of it: nothing, if the program has closed it.
    pub(crate) fn close(self) {
        if self.is_ours() {
            sys::close(self.epoll);
        }
        if self.has_its_guard() {
            sys::close(self.guard);
        }
    }
}
