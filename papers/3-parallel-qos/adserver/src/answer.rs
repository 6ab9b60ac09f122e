//! The answers to clients, and their destinations.

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
    /// A redirect to a banner's landing address. The address comes from the contract, never from a
    /// request.
    Go(Landing),
    Error(RequestError),
    /// The queue to the disk is full; the client may try again later.
    Busy,
    /// The database failed, or a page panicked. The cause is on stderr.
    Failed,
}

impl Answer {
    pub(crate) fn json(status: StatusCode, value: &impl Serialize) -> Self {
        serde_json::to_string(value).map_or(Self::Failed, |json| Self::Json(status, json))
    }
}

/// The destination of an answer, and the kind under which its request is counted.
pub(crate) struct ReplyHandle {
    pub(crate) reply: ReplySender<Answer>,
    pub(crate) kind: RequestKind,
    pub(crate) since: Instant,
}

impl fmt::Debug for ReplyHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReplyHandle").field("kind", &self.kind).finish_non_exhaustive()
    }
}
