//! The error of a terminated request, and its reason.

use std::time::Duration;

use bywash_engine::Reason as Gateways;

/// Why a request was terminated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reason {
    /// The request had run for as long as its class allows.
    RanTooLong,
    /// The client closed the connection.
    ClientLeft,
    /// The time that the caller allowed was over.
    Deadline,
}

impl Reason {
    /// Returns the reason's name, which is the gateway's where the gateway has the same reason.
    pub const fn name(self) -> &'static str {
        match self {
            Self::RanTooLong => Gateways::RanTooLong.name(),
            Self::ClientLeft => Gateways::ClientLeft.name(),
            Self::Deadline => "deadline",
        }
    }
}

/// The error of a request that is over: all work for it should stop.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("class `{class}`: {}", reason.name())]
pub struct Terminated {
    /// The request's class.
    pub class: String,
    /// Why it was terminated.
    pub reason: Reason,
    /// After how long the client may retry. It is only meaningful for [`Reason::RanTooLong`], since
    /// the other reasons say nothing about the load.
    pub retry_after: Duration,
}
