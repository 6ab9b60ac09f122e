//! The application behind: connections to it, and one exchange at a time on each.

mod io;
mod link;
mod pool;

pub(crate) use link::{Link, SendError};
pub(crate) use pool::Pool;

use std::time::Duration;

/// What went wrong between the gateway and the upstream.
#[derive(Debug, thiserror::Error)]
pub(crate) enum UpstreamError {
    /// Nobody listens there, or the name means nothing.
    #[error("connecting failed: {0}")]
    Connect(std::io::Error),
    /// It did not take the connection in time.
    #[error("connecting took longer than {0:?}")]
    ConnectTimeout(Duration),
    /// It did not begin to answer in time.
    #[error("no answer within {0:?}")]
    ResponseTimeout(Duration),
    /// It closed or reset the connection before it answered.
    #[error("the connection ended before the answer: {0}")]
    Closed(hyper::Error),
    /// The client's body broke off or is malformed: the upstream is not to blame.
    #[error("the client's body is not what it said: {0}")]
    Upload(hyper::Error),
    /// It went over to another protocol, and nobody had asked for that.
    #[error("the upstream switched protocols unasked")]
    Switched,
    /// What it sent is no HTTP.
    #[error("the answer is no HTTP: {0}")]
    Garbage(hyper::Error),
}

impl UpstreamError {
    pub(crate) fn from_hyper(error: hyper::Error) -> Self {
        if error.is_user() {
            Self::Upload(error)
        } else if error.is_parse() {
            Self::Garbage(error)
        } else {
            Self::Closed(error)
        }
    }
}
