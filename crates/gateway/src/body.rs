//! Bodies as they pass through: pieces of data, then an end.

use bytes::Bytes;
use bywash_message::{Fault, Fields};

/// A piece of a body.
pub(crate) enum Piece {
    Data(Bytes),
    /// The end of the body, perhaps with trailers.
    End(Option<Box<Fields>>),
}

/// Why a client's body cannot be read to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BodyError {
    /// The body does not match its framing.
    #[error("malformed")]
    Malformed(Fault),
    /// The client closed the connection before the end of the body.
    #[error("the client closed the connection too early")]
    BrokenOff,
    /// The client sends the body too slowly.
    #[error("too slow")]
    TooSlow,
    /// The body is larger than its class allows.
    #[error("too large")]
    TooLarge,
}
