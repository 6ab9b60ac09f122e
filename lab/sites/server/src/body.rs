//! The body of a request, bounded in size and time.

use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::Incoming;
use tokio::time;

/// The maximum size of a request body, in bytes. hyper bounds the request line to the same 64 KiB.
pub const MAX_BODY: usize = 64 * 1024;

/// The time limit for a client to send its whole body.
const BODY_TIME: Duration = Duration::from_secs(30);

/// The reason why a body cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyError {
    /// The body is larger than [`MAX_BODY`].
    TooLarge,
    /// The body did not arrive within the time limit.
    Slow,
    /// The framing of the body is not valid HTTP, or the connection broke.
    Broken,
}

impl BodyError {
    /// Returns the status of the response to this error.
    pub(crate) const fn status(self) -> StatusCode {
        match self {
            Self::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Slow => StatusCode::REQUEST_TIMEOUT,
            Self::Broken => StatusCode::BAD_REQUEST,
        }
    }

    /// Returns a line that explains the error to the person who sent the body.
    pub(crate) const fn words(self) -> &'static str {
        match self {
            Self::TooLarge => "the body is larger than 64 KiB",
            Self::Slow => "the body took too long",
            Self::Broken => "the body is malformed",
        }
    }
}

/// Reads a body to its end. Work on the request must not begin earlier, because hyper notices a
/// departure only when nothing is left to read from the client. Fails if the body is too large, too
/// slow or broken.
pub(crate) async fn read(body: Incoming) -> Result<Bytes, BodyError> {
    let whole = time::timeout(BODY_TIME, Limited::new(body, MAX_BODY).collect());
    match whole.await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(BodyError::TooLarge),
        Ok(Err(_)) => Err(BodyError::Broken),
        Err(_) => Err(BodyError::Slow),
    }
}
