//! What a request costs in CPU time, beside peers in the same run.
//!
//! Each proxy has one worker confined to core 0; the load and the upstream share core 1. A closed
//! loop of [`CONNECTIONS`] keep-alive connections keeps the proxy as busy as the load can; HTTP/2
//! is loaded by `h2load`, handshakes by clients that do nothing else. Counted are the proxy's user and system time from `/proc` over the requests answered meanwhile, which,
//! unlike requests per second, does not depend on how fast the load side is. CPU per request falls
//! as a proxy finds more sockets ready at each wake-up: compare within a table only.

pub mod cpu;
pub mod h2load;
pub mod handshake;
pub mod load;
pub mod noise;
pub mod round;
pub mod series;

use std::fmt;

use bywash_harness::peer::{Front, Kind, Task};

/// Connections of the load; each has one request under way.
pub const CONNECTIONS: usize = 64;

/// A kind of work to be paid for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Case {
    /// Every request goes upstream at once.
    Proxied,
    /// Every request waits in the queue first: a quarter as many slots as connections.
    Queued,
    /// Every request is answered 503 with `Retry-After`.
    Refused,
    /// Proxied, from HTTP/2 in clear: 16 connections of 8 streams.
    Http2,
    /// Proxied, by TLS on connections that stay.
    Tls,
    /// A whole TLS 1.3 handshake, and nothing else; one of these is a request in the tables.
    Handshake,
}

impl Case {
    /// All, in the order of the report.
    pub const ALL: [Self; 6] =
        [Self::Proxied, Self::Queued, Self::Refused, Self::Http2, Self::Tls, Self::Handshake];

    /// What the proxy is configured for.
    pub fn task(self) -> Task {
        match self {
            Self::Proxied | Self::Http2 | Self::Tls | Self::Handshake => {
                Task::Forward { limit: 1024 }
            }
            Self::Queued => Task::Forward { limit: 16 },
            Self::Refused => Task::Refuse,
        }
    }

    /// What its clients speak.
    pub fn front(self) -> Front {
        match self {
            Self::Proxied | Self::Queued | Self::Refused => Front::Http1,
            Self::Http2 => Front::Http2,
            Self::Tls | Self::Handshake => Front::Tls,
        }
    }

    /// The status of a correct answer.
    pub fn status(self) -> &'static str {
        match self {
            Self::Proxied | Self::Queued | Self::Http2 | Self::Tls | Self::Handshake => "200",
            Self::Refused => "503",
        }
    }

    /// nginx cannot queue.
    pub fn suits(self, kind: Kind) -> bool {
        !(self == Self::Queued && kind == Kind::Nginx)
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Proxied => "proxied",
            Self::Queued => "queued",
            Self::Refused => "refused",
            Self::Http2 => "http2",
            Self::Tls => "tls",
            Self::Handshake => "handshake",
        })
    }
}
