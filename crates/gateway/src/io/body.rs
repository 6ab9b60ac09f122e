//! Bodies of messages as they pass through the gateway: pieces of data, then an end.

use std::task::{Context, Poll};

use bytes::{Buf, Bytes, BytesMut};
use bywash_message::{Decoder, Fields, ParseError, Part};

/// The maximum size in bytes of a piece of data that is copied out of the read buffer. A copied
/// piece does not keep the buffer alive.
const COPIED: usize = 4096;

/// A piece of a message body.
pub(crate) enum Piece {
    Data(Bytes),
    /// The end of the body, perhaps with trailers.
    End(Option<Box<Fields>>),
}

/// The reason why a client's request body cannot be read to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BodyError {
    /// The body does not match its framing.
    #[error("malformed")]
    Malformed(ParseError),
    /// The client closed the connection before the end of the body.
    #[error("the client closed the connection too early")]
    BrokenOff,
    /// The client sends the body more slowly than the minimum rate.
    #[error("too slow")]
    TooSlow,
    /// The body is larger than its class allows.
    #[error("too large")]
    TooLarge,
}

/// The body of a client's request, as the client's connection delivers it.
pub(crate) trait Incoming {
    /// Returns the next piece of the body. Must not be called after the end.
    fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Result<Piece, BodyError>>;

    /// Records that the body is not read for now. A connection may then charge its window to the
    /// memory budget, because the client may fill the window.
    fn pauses(&mut self) {}
}

/// The body of a request. A request without a body has an empty one.
#[derive(Default)]
pub(crate) struct Body(Option<Box<dyn Incoming>>);

impl Body {
    pub(crate) fn new(incoming: impl Incoming + 'static) -> Self {
        Self(Some(Box::new(incoming)))
    }

    /// Returns the next piece of the body; the end at once if the request has none. Must not be
    /// called after the end.
    pub(crate) fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Result<Piece, BodyError>> {
        match &mut self.0 {
            None => Poll::Ready(Ok(Piece::End(None))),
            Some(incoming) => incoming.poll_piece(cx),
        }
    }

    /// Records that the body is not read for now.
    pub(crate) fn pauses(&mut self) {
        if let Some(incoming) = &mut self.0 {
            incoming.pauses();
        }
    }
}

/// Takes the next piece of a body out of the bytes read so far. Returns `None` if more must be
/// read, and an error if the bytes do not match the framing.
pub(crate) fn decode(
    decoder: &mut Decoder,
    input: &mut BytesMut,
) -> Result<Option<Piece>, ParseError> {
    let (used, part) = decoder.decode(input)?;
    match part {
        Part::More => {
            input.advance(used);
            Ok(None)
        }
        Part::End(trailers) => {
            input.advance(used);
            Ok(Some(Piece::End(trailers.map(Box::new))))
        }
        Part::Data(data) if data.len() <= COPIED => {
            let data = Bytes::copy_from_slice(data);
            input.advance(used);
            Ok(Some(Piece::Data(data)))
        }
        Part::Data(data) => {
            // The data is the last part of the used bytes. Chunk framing comes before it.
            let length = data.len();
            input.advance(used - length);
            Ok(Some(Piece::Data(input.split_to(length).freeze())))
        }
    }
}
