//! What is asked of a watch, what it answers, and how both read in the kernel's flags.
//!
//! What the kernel shows of the other side (Linux 6, seen on loopback; `tests` of `native/sentry`):
//!
//! | what it did | flags |
//! |---|---|
//! | `shutdown(SHUT_WR)`, or `close` of TCP | `RDHUP`: no way to tell them apart but to write |
//! | reset, or vanished and timed out | `RDHUP`, `HUP`, `ERR` |
//! | `close` of a UNIX socket, or both sides have shut down | `RDHUP`, `HUP` |
//! | nothing: the socket was never connected | `HUP` |
//! | nothing: something lies in the error queue (zero copy, time stamps) | `ERR` |

use std::{fmt, io};

use crate::sys::Flags;

/// What counts as news of a connection. The default: that the other side sends no more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Interest {
    /// Also that bytes have come that nobody has read, once.
    pub data: bool,
    /// One that has only shut down its sending side is still there. A TCP connection that was
    /// closed looks the same until something is written to it.
    pub half_close_ok: bool,
}

/// What has happened to a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The other side sends no more: it has closed, or shut down its sending side.
    Ended,
    /// The other side has reset the connection, or was given up by the kernel.
    Reset,
    /// Bytes have come ([`Interest::data`]). The watch goes on.
    Data,
}

/// Why a connection is not watched.
#[derive(Debug)]
#[non_exhaustive]
pub enum Refused {
    /// Its other side has left already.
    Left(Reason),
    /// It is a socket without another side.
    NotConnected,
    /// It is a socket, but not of connections that end.
    NotAStream,
    /// It is being watched by this process.
    Watched,
    /// The kernel says no.
    System(io::Error),
}

impl Interest {
    /// What to ask of epoll. Edge-triggered, not one-shot: a socket with something in its error
    /// queue would be reported, and have to be asked for anew, without end.
    pub(crate) fn flags(self) -> Flags {
        let mut flags = Flags::EDGE;
        if self.data {
            flags |= Flags::IN;
        }
        // A FIN is `IN` too: whoever asks for data must be able to tell.
        if self.data || !self.half_close_ok {
            flags |= Flags::RDHUP;
        }
        flags
    }

    /// What the flags of a connected socket mean, if it is anything that was asked for. Beside
    /// `RDHUP`, `IN` is to be there only if bytes are: the kernel says it of a bare FIN, too.
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
    /// As an error of the operating system: `ESHUTDOWN`, `ECONNRESET`, 0 for data.
    pub fn errno(self) -> i32 {
        match self {
            Reason::Ended => libc::ESHUTDOWN,
            Reason::Reset => libc::ECONNRESET,
            Reason::Data => 0,
        }
    }
}

impl Refused {
    /// As an error of the operating system.
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
