//! The error of a terminated request, and its reason.

use std::time::Duration;

use bywash_engine::Reason as Gateways;

/// The reason why a request was terminated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reason {
    /// The request had run longer than the present threshold of its class.
    RanTooLong,
    /// The client closed the connection before it got the response.
    ClientLeft,
    /// The deadline that the caller had set was reached.
    Deadline,
}

impl Reason {
    /// Returns the reason's name. Where the gateway has the same reason, this is the gateway's name
    /// for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::RanTooLong => Gateways::RanTooLong.name(),
            Self::ClientLeft => Gateways::ClientLeft.name(),
            Self::Deadline => "deadline",
        }
    }
}

/// The error of a request that is terminated. All work for the request should stop.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("class `{class}`: {}", reason.name())]
pub struct Terminated {
    /// The name of the request's class.
    pub class: String,
    /// The reason why the request was terminated.
    pub reason: Reason,
    /// The time after which the client may retry. It is meaningful only for [`Reason::RanTooLong`],
    /// because the other reasons say nothing about the load.
    pub retry_after: Duration,
}
