//! What a request costs in CPU time, beside peers in the same run.
//!
//! Each proxy has one worker confined to core 0; the load and the upstream share core 1. A closed
//! loop of [`CONNECTIONS`] keep-alive connections keeps the proxy as busy as the load can. Counted
//! are the proxy's user and system time from `/proc` over the requests answered meanwhile, which,
//! unlike requests per second, does not depend on how fast the load side is. CPU per request falls
//! as a proxy finds more sockets ready at each wake-up: compare within a table only.

pub mod load;
pub mod round;
pub mod series;
pub mod upstream;

use crate::peer::{Kind, Task};
use std::fmt;

/// Connections of the load; each has one request under way.
pub const CONNECTIONS: usize = 64;
/// The core of the proxies.
pub const PROXY_CORE: usize = 0;
/// The core of the load and the upstream.
pub const LOAD_CORE: usize = 1;

/// A kind of work to be paid for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Case {
    /// Every request goes upstream at once.
    Proxied,
    /// Every request waits in the queue first: a quarter as many slots as connections.
    Queued,
    /// Every request is answered 503 with `Retry-After`.
    Refused,
}

impl Case {
    /// All, in the order of the report.
    pub const ALL: [Self; 3] = [Self::Proxied, Self::Queued, Self::Refused];

    /// What the proxy is configured for.
    pub fn task(self) -> Task {
        match self {
            Self::Proxied => Task::Forward { limit: 1024 },
            Self::Queued => Task::Forward { limit: 16 },
            Self::Refused => Task::Refuse,
        }
    }

    /// The status of a correct answer.
    pub fn status(self) -> &'static str {
        match self {
            Self::Proxied | Self::Queued => "200",
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
        })
    }
}
