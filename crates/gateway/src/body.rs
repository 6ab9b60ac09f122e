//! Bodies as they pass through: pieces of data, then an end.

use bytes::Bytes;
use bywash_message::{Fault, Fields};

/// A piece of a body.
pub(crate) enum Piece {
    Data(Bytes),
    /// There is no more; perhaps trailers.
    End(Option<Box<Fields>>),
}

/// Why a client's body cannot be read on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BodyError {
    /// It is not what its head said.
    #[error("malformed")]
    Malformed(Fault),
    /// It broke off.
    #[error("it broke off")]
    BrokenOff,
    /// It comes too slowly.
    #[error("too slow")]
    TooSlow,
    /// It is larger than the body of a request of its class may be.
    #[error("too large")]
    TooLarge,
}
