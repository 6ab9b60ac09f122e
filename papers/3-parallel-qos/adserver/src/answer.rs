//! The answers to clients, and their destinations.

use std::fmt;
use std::time::Instant;

use bywash_site::ReplySender;
use http::StatusCode;
use serde::Serialize;

use crate::counters::Kind;
use crate::request_error::RequestError;
use crate::values::Landing;

/// An answer to a client.
#[derive(Debug)]
pub(crate) enum Answer {
    Json(StatusCode, String),
    /// On to a banner's landing address, which its contract named and no request can.
    Go(Landing),
    Error(RequestError),
    /// The disk is behind: later.
    Busy,
    /// The database failed; its words are on stderr.
    Failed,
}

impl Answer {
    pub(crate) fn json(status: StatusCode, value: &impl Serialize) -> Self {
        serde_json::to_string(value).map_or(Self::Failed, |json| Self::Json(status, json))
    }
}

/// The destination of an answer, and the kind that it counts as.
pub(crate) struct ReplyHandle {
    pub(crate) reply: ReplySender<Answer>,
    pub(crate) kind: Kind,
    pub(crate) since: Instant,
}

impl fmt::Debug for ReplyHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReplyHandle").field("kind", &self.kind).finish_non_exhaustive()
    }
}
