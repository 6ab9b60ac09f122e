//! The events that a watch reports, and the epoll flags that signal them.
//!
//! The kernel signals events of the peer as follows (Linux 6, observed on loopback; see `tests` of
//! `native/sentry`):
//!
//! | event | flags |
//! |---|---|
//! | `shutdown(SHUT_WR)`, or `close` of TCP | `RDHUP`: only writing tells them apart |
//! | reset, or peer timed out | `RDHUP`, `HUP`, `ERR` |
//! | `close` of a UNIX socket, or both sides have shut down | `RDHUP`, `HUP` |
//! | none: the socket was never connected | `HUP` |
//! | none: the error queue is not empty (zero copy, time stamps) | `ERR` |

use std::{fmt, io};

use crate::sys::Flags;

/// The events of a connection that a watch reports. The default is only that the peer sends no
/// more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Interest {
    /// Whether the arrival of unread bytes is reported too, once.
    pub data: bool,
    /// Whether a peer that has only shut down its sending side still counts as connected. A closed
    /// TCP connection looks the same until something is written to it.
    pub half_close_ok: bool,
}

/// An event of a watched connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The peer sends no more: it has closed the connection, or shut down its sending side.
    Ended,
    /// The peer has reset the connection, or the kernel has given up on a peer that does not
    /// respond.
    Reset,
    /// Unread bytes have arrived ([`Interest::data`]). The watch continues.
    Data,
}

/// The reason why a connection is not watched.
#[derive(Debug)]
#[non_exhaustive]
pub enum Refused {
    /// The peer has already left.
    Left(Reason),
    /// The socket is not connected.
    NotConnected,
    /// The socket is not a stream or sequential-packet socket.
    NotAStream,
    /// The process already watches the connection.
    Watched,
    /// The kernel returned an error.
    System(io::Error),
}

impl Interest {
    /// Returns the epoll flags to register. They are edge-triggered and not one-shot. With
    /// one-shot, a socket with a non-empty error queue would be reported and registered again
    /// without end.
    pub(crate) fn flags(self) -> Flags {
        let mut flags = Flags::EDGE;
        if self.data {
            flags |= Flags::IN;
        }
        // A FIN also sets `IN`, so `RDHUP` is needed to tell it from data.
        if self.data || !self.half_close_ok {
            flags |= Flags::RDHUP;
        }
        flags
    }

    /// Returns the event that the flags of a connected socket signal, or `None` if it is not to be
    /// reported. The kernel also sets `IN` for a bare FIN. So if `RDHUP` is set, the caller must
    /// have removed `IN` unless there are unread bytes.
    pub(crate) fn reason(self, flags: Flags) -> Option<Reason> {
        if flags.has(Flags::HUP) {
            Some(if flags.has(Flags::ERR) { Reason::Reset } else { Reason::Ended })
        } else if flags.has(Flags::RDHUP) {
            if self.half_close_ok { self.data(flags) } else { Some(Reason::Ended) }
        } else {
            self.data(flags)
        }
    }

    fn data(self, flags: Flags) -> Option<Reason> {
        (self.data && flags.has(Flags::IN)).then_some(Reason::Data)
    }
}

impl Reason {
    /// Returns the event as a number of `errno`: `ESHUTDOWN`, `ECONNRESET`, or 0 for data.
    pub fn errno(self) -> i32 {
        match self {
            Reason::Ended => libc::ESHUTDOWN,
            Reason::Reset => libc::ECONNRESET,
            Reason::Data => 0,
        }
    }
}

impl Refused {
    /// Returns the reason as a number of `errno`.
    pub fn errno(&self) -> i32 {
        match self {
            Refused::Left(reason) => reason.errno(),
            Refused::NotConnected => libc::ENOTCONN,
            Refused::NotAStream => libc::EINVAL,
            Refused::Watched => libc::EEXIST,
            Refused::System(error) => error.raw_os_error().unwrap_or(libc::EIO),
        }
    }
}

impl From<io::Error> for Refused {
    fn from(error: io::Error) -> Self {
        Refused::System(error)
    }
}

impl From<Refused> for io::Error {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::System(error) => error,
            other => io::Error::new(io::Error::from_raw_os_error(other.errno()).kind(), other),
        }
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refused::Left(_) => f.write_str("the other side of the connection has left already"),
            Refused::NotConnected => f.write_str("the socket is not connected"),
            Refused::NotAStream => f.write_str("the socket is not of a kind with connections"),
            Refused::Watched => f.write_str("this process watches the connection already"),
            Refused::System(error) => write!(f, "the connection cannot be watched: {error}"),
        }
    }
}

impl std::error::Error for Refused {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_queue_is_no_departure() {
        assert_eq!(Interest::default().reason(Flags::ERR), None);
    }

    #[test]
    fn bytes_before_a_fin_are_data_for_one_who_takes_half_closes() {
        let interest = Interest { data: true, half_close_ok: true };
        assert_eq!(interest.reason(Flags::RDHUP), None);
        assert_eq!(interest.reason(Flags::IN | Flags::RDHUP), Some(Reason::Data));
        assert_eq!(interest.reason(Flags::IN), Some(Reason::Data));
    }

    #[test]
    fn data_and_a_departure_together_are_a_departure() {
        let interest = Interest { data: true, half_close_ok: false };
        assert_eq!(interest.reason(Flags::IN | Flags::RDHUP), Some(Reason::Ended));
    }
}
