//! The epoll set of the process, and the check that its descriptor still refers to it.
//!
//! A program may close every descriptor that it has (`closefrom`, a daemon that detaches late),
//! including those of this crate. The number of the set may then refer to another file, even to the
//! epoll set of a runtime. Adding to it, waiting on it or closing it would interfere with that
//! file. So the set contains a guard: a socket that never receives data. Its cookie shows whether
//! the guard's descriptor still refers to the guard. Only this crate adds the guard to a set, so a
//! set that contains it is the right one.

use std::io;
use std::os::fd::{AsRawFd, IntoRawFd, RawFd};

use crate::key::Key;
use crate::sys::{self, Flags};

/// The descriptors of the epoll set and its guard. The set lives as long as the process, or until
/// the program closes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Set {
    pub(crate) epoll: RawFd,
    pub(crate) guard: RawFd,
    /// The socket cookie of the guard.
    pub(crate) cookie: u64,
}

/// The key of the guard in the epoll set. It matches no watch, because no descriptor is below 0.
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

    /// Returns whether both descriptors still refer to the epoll set and its guard. May be called
    /// in the child of a fork.
    pub(crate) fn is_ours(self) -> bool {
        let key = OF_THE_GUARD.into();
        self.has_its_guard() && sys::epoll_change(self.epoll, self.guard, key, Flags::EDGE).is_ok()
    }

    /// Closes the set and the guard, unless the program has already closed them.
    pub(crate) fn close(self) {
        if self.is_ours() {
            sys::close(self.epoll);
        }
        if self.has_its_guard() {
            sys::close(self.guard);
        }
    }
}
