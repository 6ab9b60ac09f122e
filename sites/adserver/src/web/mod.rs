//! The HTTP side: requests are read, queued, and answered. The thread is [`bywash_site::Door`]'s.

mod exchange;
mod respond;

use http::StatusCode;
use serde::Serialize;

use crate::fault::Fault;
use crate::terms::Landing;

/// What a client is told.
#[derive(Debug)]
pub(crate) enum Answer {
    Json(StatusCode, String),
    /// On to a banner's landing address, which its contract named and no request can.
    Go(Landing),
    No(Fault),
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
