//! Measures the CPU time that a proxy uses per request, for bywash and other proxies in the same
//! run.
//!
//! Each proxy has one worker, pinned to core 0. The load generator and the upstream share core 1.
//! The load generator is a closed loop of [`CONNECTIONS`] keep-alive connections. For HTTP/2 it is
//! `h2load`. For the handshake case it consists of clients that only perform handshakes.
//!
//! The result is the proxy's user and system time from `/proc`, divided by the number of requests
//! answered in the same time. Unlike the number of requests per second, this result does not depend
//! on the speed of the load generator. CPU time per request falls when a proxy finds more sockets
//! ready at each wake-up, so only values within one table can be compared.

pub mod cpu;
pub mod h2load;
pub mod handshake;
pub mod load;
pub mod noise;
pub mod round;
pub mod series;

use std::fmt;

use bywash_harness::peer::{Front, PeerKind, Task};

/// The number of connections of the load generator, each with one request in flight.
pub const CONNECTIONS: usize = 64;

/// A kind of work whose CPU time is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Case {
    /// Forward every request upstream without queueing
    Proxied,
    /// Forward every request; bywash writes an access log to a file, the other proxies none
    Logged,
    /// Queue requests: there are a quarter as many slots as connections
    Queued,
    /// Answer every request with 503 and `Retry-After`
    Refused,
    /// Forward requests from HTTP/2 without TLS: 16 connections, each with 8 concurrent streams
    Http2,
    /// Forward requests from TLS on keep-alive connections
    Tls,
    /// Full TLS 1.3 handshakes and nothing else; each counts as a request in the tables
    Handshake,
}

impl Case {
    /// All cases, in the order of the report.
    pub const ALL: [Self; 7] = [
        Self::Proxied,
        Self::Logged,
        Self::Queued,
        Self::Refused,
        Self::Http2,
        Self::Tls,
        Self::Handshake,
    ];

    /// Returns the task that the proxy is configured for.
    pub fn task(self) -> Task {
        match self {
            Self::Proxied | Self::Logged | Self::Http2 | Self::Tls | Self::Handshake => {
                Task::Forward { limit: 1024 }
            }
            Self::Queued => Task::Forward { limit: 16 },
            Self::Refused => Task::Refuse,
        }
    }

    /// Returns the protocol that the clients speak.
    pub fn front(self) -> Front {
        match self {
            Self::Proxied | Self::Logged | Self::Queued | Self::Refused => Front::Http1,
            Self::Http2 => Front::Http2,
            Self::Tls | Self::Handshake => Front::Tls,
        }
    }

    /// Returns the status of a correct response, as three digits.
    pub fn status(self) -> &'static str {
        match self {
            Self::Proxied
            | Self::Logged
            | Self::Queued
            | Self::Http2
            | Self::Tls
            | Self::Handshake => "200",
            Self::Refused => "503",
        }
    }

    /// Returns whether `kind` supports this case. nginx cannot queue requests.
    pub fn is_supported_by(self, kind: PeerKind) -> bool {
        !(self == Self::Queued && kind == PeerKind::Nginx)
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Proxied => "proxied",
            Self::Logged => "logged",
            Self::Queued => "queued",
            Self::Refused => "refused",
            Self::Http2 => "http2",
            Self::Tls => "tls",
            Self::Handshake => "handshake",
        })
    }
}
