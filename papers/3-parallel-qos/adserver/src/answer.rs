//! The answers to clients, and the handle through which an answer is sent.

use std::fmt;
use std::time::Instant;

use bywash_site::ReplySender;
use http::StatusCode;
use serde::Serialize;

use crate::counters::RequestKind;
use crate::request_error::RequestError;
use crate::values::Landing;

/// An answer to a client.
#[derive(Debug)]
pub(crate) enum Answer {
    Json(StatusCode, String),
    /// A redirect to the landing address of a banner. The address comes from the contract, never
    /// from a request.
    Go(Landing),
    Error(RequestError),
    /// The queue to the writer is full. The client may try again later.
    Busy,
    /// The database failed, or a page panicked. The cause was written to stderr.
    Failed,
}

impl Answer {
    pub(crate) fn json(status: StatusCode, value: &impl Serialize) -> Self {
        serde_json::to_string(value).map_or(Self::Failed, |json| Self::Json(status, json))
    }
}

/// The channel for the answer to one request, with the kind under which the request is counted and
/// the time of its receipt.
pub(crate) struct ReplyHandle {
    pub(crate) reply: ReplySender<Answer>,
    pub(crate) kind: RequestKind,
    /// The time at which the request was received.
    pub(crate) since: Instant,
}

impl fmt::Debug for ReplyHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReplyHandle").field("kind", &self.kind).finish_non_exhaustive()
    }
}
