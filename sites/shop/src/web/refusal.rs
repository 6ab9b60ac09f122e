//! Why a request got no further than the HTTP side, and what HTTP calls it.

use http::{Method, StatusCode};

/// A request that is answered without work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The path means nothing.
    NoSuchPage,
    /// The path wants another method.
    Method { allowed: Method },
    /// `shop-demand-us` is not a number of microseconds up to 60 s.
    Demand,
    /// `shop-order-tag` is not 1 to 64 plain characters.
    OrderTag,
    /// The body is larger than 64 KiB.
    TooLarge,
    /// The body did not arrive in time.
    SlowBody,
    /// The body is no valid HTTP.
    BrokenBody,
    /// The queue takes no more.
    Busy,
    /// The shop closed before the request was done.
    Closing,
}

impl Refusal {
    /// The status it is answered with.
    pub(super) fn status(&self) -> StatusCode {
        match self {
            Self::NoSuchPage => StatusCode::NOT_FOUND,
            Self::Method { .. } => StatusCode::METHOD_NOT_ALLOWED,
            Self::Demand | Self::OrderTag | Self::BrokenBody => StatusCode::BAD_REQUEST,
            Self::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::SlowBody => StatusCode::REQUEST_TIMEOUT,
            Self::Busy | Self::Closing => StatusCode::SERVICE_UNAVAILABLE,
        }
    }

    /// One line for the person who sent it.
    pub(super) fn words(&self) -> &'static str {
        match self {
            Self::NoSuchPage => "no such page",
            Self::Method { .. } => "this page wants another method",
            Self::Demand => "shop-demand-us must be whole microseconds, at most 60000000",
            Self::OrderTag => "shop-order-tag must be 1 to 64 of A-Z a-z 0-9 _ -",
            Self::TooLarge => "the body is larger than 64 KiB",
            Self::SlowBody => "the body took too long",
            Self::BrokenBody => "the body is broken",
            Self::Busy => "too many requests are waiting",
            Self::Closing => "the shop is closing",
        }
    }
}
