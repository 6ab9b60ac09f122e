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
    /// There is nothing to search for, or too much.
    Words,
    /// A book's number is none.
    Number,
    /// There is no body to work with.
    Body(BodyFault),
    /// The queue takes no more.
    Busy,
    /// The store closed before the request was done.
    Closing,
}

impl Refusal {
    /// The status it is answered with.
    pub(super) fn status(&self) -> StatusCode {
        match self {
            Self::NoSuchPage => StatusCode::NOT_FOUND,
            Self::Method { .. } => StatusCode::METHOD_NOT_ALLOWED,
            Self::Words | Self::Number => StatusCode::BAD_REQUEST,
            Self::Body(fault) => fault.status(),
            Self::Busy | Self::Closing => StatusCode::SERVICE_UNAVAILABLE,
        }
    }

    /// One line for the person who sent it.
    pub(super) fn words(&self) -> &'static str {
        match self {
            Self::NoSuchPage => "no such page",
            Self::Method { .. } => "this page wants another method",
            Self::Words => "q must be 1 to 100 characters, none of them a control character",
            Self::Number => "id must be the number of a book",
            Self::Body(fault) => fault.words(),
            Self::Busy => "too many requests are waiting",
            Self::Closing => "the store is closing",
        }
    }
}
