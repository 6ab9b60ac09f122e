//! Why a request got no further than the HTTP side, and what HTTP calls it.

use bywash_site::BodyFault;
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
    /// There is no body to work with.
    Body(BodyFault),
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
            Self::Demand | Self::OrderTag => StatusCode::BAD_REQUEST,
            Self::Body(fault) => fault.status(),
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
            Self::Body(fault) => fault.words(),
            Self::Busy => "too many requests are waiting",
            Self::Closing => "the shop is closing",
        }
    }
}
