//! The reply to a client: a head, and the source of its body.

use std::task::{Context, Poll, ready};

use bytes::Bytes;
use bywash_message::{Fields, Framing};
use http::StatusCode;
use tokio::sync::mpsc;

use crate::elephants::Paced;
use crate::io::body::Piece;
use crate::io::wire::Wire;
use crate::request::{Stream, Streaming};
use crate::upstream::UpstreamError;

/// A reply, ready to be written.
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    /// The upstream's own reason phrase, if it has any.
    pub(crate) reason: Vec<u8>,
    /// The fields without framing and without fields that belong to one connection.
    pub(crate) fields: Fields,
    pub(crate) framing: Framing,
    /// Whether the connection ends after the reply.
    pub(crate) close: bool,
    pub(crate) body: Answer,
}

/// The body of a reply.
pub(crate) enum Answer {
    /// No body.
    Empty,
    /// The gateway's own text.
    Local(Bytes),
    /// The gateway's own text, as it comes; it ends when the channel ends.
    Later(mpsc::Receiver<Bytes>),
    /// The upstream's body, as it comes.
    Stream(Box<Stream>),
    /// The connection itself, which now speaks another protocol.
    Tunnel(Box<Tunnel>),
}

/// An upstream's connection that speaks another protocol, with the request that it belongs to.
pub(crate) struct Tunnel {
    pub(crate) wire: Wire,
    pub(crate) request: Streaming,
}

impl Tunnel {
    /// Counts bytes that went up and down.
    pub(crate) fn moved(&mut self, up: usize, down: usize) {
        self.request.record.sent(up as u64);
        self.request.record.received(down);
    }
}

impl Reply {
    /// Returns a reply with the gateway's own text.
    pub(crate) fn local(status: StatusCode, fields: Fields, words: impl Into<Bytes>) -> Self {
        let words = words.into();
        let framing = Framing::Length(words.len() as u64);
        let body = if words.is_empty() { Answer::Empty } else { Answer::Local(words) };
        Self { status, reason: Vec::new(), fields, framing, close: false, body }
    }

    /// Returns the reply with the connection closed after it.
    pub(crate) fn closing(mut self) -> Self {
        self.close = true;
        self
    }
}

impl Answer {
    /// Returns the next piece. Not to be polled after the end.
    pub(crate) fn poll_piece(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Piece, UpstreamError>> {
        let words = match self {
            Self::Stream(stream) => return stream.poll_piece(cx),
            Self::Later(words) => {
                let piece = ready!(words.poll_recv(cx)).map_or(Piece::End(None), Piece::Data);
                return Poll::Ready(Ok(piece));
            }
            Self::Local(words) => std::mem::take(words),
            Self::Empty | Self::Tunnel(_) => Bytes::new(),
        };
        let piece = if words.is_empty() { Piece::End(None) } else { Piece::Data(words) };
        Poll::Ready(Ok(piece))
    }

    /// Sends the rest of the request's body upstream, while the client cannot take more of the
    /// answer. Ready when the request was stopped because its client takes the answer too slowly.
    /// `unread` returns the bytes of the answer that the client has not taken yet.
    pub(crate) fn poll_upload(
        &mut self,
        cx: &mut Context<'_>,
        unread: impl Fn() -> usize,
    ) -> Poll<()> {
        match self {
            Self::Stream(stream) => stream.poll_upload(cx, unread),
            Self::Empty | Self::Local(_) | Self::Later(_) | Self::Tunnel(_) => Poll::Pending,
        }
    }

    /// Returns whether the request was stopped in the middle of this answer.
    pub(crate) const fn was_stopped(&self) -> bool {
        matches!(self, Self::Stream(stream) if stream.was_stopped())
    }

    /// Returns the pacing of the answer's bytes, if a rule for elephants throttles them.
    pub(crate) fn pacing(&mut self) -> Option<&mut Paced> {
        match self {
            Self::Stream(stream) => stream.pacing(),
            Self::Empty | Self::Local(_) | Self::Later(_) | Self::Tunnel(_) => None,
        }
    }

    /// Returns whether the answer may wait long enough that the gateway must watch for the client's
    /// disconnect.
    pub(crate) const fn is_watched(&self) -> bool {
        matches!(self, Self::Later(_))
    }

    /// Returns the reply body for a `HEAD`: the gateway's own text is left out, but its length
    /// stays in the head.
    pub(crate) fn without_body(self) -> Self {
        match self {
            Self::Local(_) | Self::Later(_) => Self::Empty,
            other => other,
        }
    }
}
