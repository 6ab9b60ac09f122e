//! The body of a request, bounded in size and time.

use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::Incoming;
use tokio::time;

/// The longest body read. (hyper bounds the request line to the same 64 KiB.)
pub const MAX_BODY: usize = 64 * 1024;

/// How long a client may take to send its body.
const BODY_TIME: Duration = Duration::from_secs(30);

/// Why there is no body to work with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyError {
    /// Larger than [`MAX_BODY`].
    TooLarge,
    /// It did not arrive in time.
    Slow,
    /// It is no valid HTTP.
    Broken,
}

impl BodyError {
    /// The status it is answered with.
    pub(crate) const fn status(self) -> StatusCode {
        match self {
            Self::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Slow => StatusCode::REQUEST_TIMEOUT,
            Self::Broken => StatusCode::BAD_REQUEST,
        }
    }

    /// One line for the person who sent it.
    pub(crate) const fn words(self) -> &'static str {
        match self {
            Self::TooLarge => "the body is larger than 64 KiB",
            Self::Slow => "the body took too long",
            Self::Broken => "the body is malformed",
        }
    }
}

/// Reads a body to its end. That comes before any work: hyper notices a departure only when nothing
/// is left to read from the client.
pub(crate) async fn read(body: Incoming) -> Result<Bytes, BodyError> {
    let whole = time::timeout(BODY_TIME, Limited::new(body, MAX_BODY).collect());
    match whole.await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(BodyError::TooLarge),
        Ok(Err(_)) => Err(BodyError::Broken),
        Err(_) => Err(BodyError::Slow),
    }
}
