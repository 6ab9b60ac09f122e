//! The reply to a client: its head, and the source of its body.

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

/// A reply that is ready to be written to the client.
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    /// The upstream's reason phrase; empty if the upstream has sent none.
    pub(crate) reason: Vec<u8>,
    /// The header fields, without framing and without fields that belong to one connection.
    pub(crate) fields: Fields,
    pub(crate) framing: Framing,
    /// Whether the client's connection is closed after the reply.
    pub(crate) close: bool,
    pub(crate) body: Answer,
}

/// The source of a reply's body.
pub(crate) enum Answer {
    /// The reply has no body.
    Empty,
    /// A text of the gateway itself.
    Local(Bytes),
    /// Texts of the gateway itself that are produced later. The body ends when the channel is
    /// closed.
    Later(mpsc::Receiver<Bytes>),
    /// The upstream's body, which is passed on as it arrives.
    Stream(Box<Stream>),
    /// The client connection, which now speaks another protocol with the upstream.
    Tunnel(Box<Tunnel>),
}

/// An upstream connection that has switched to another protocol, with the request that it belongs
/// to.
pub(crate) struct Tunnel {
    pub(crate) wire: Wire,
    pub(crate) request: Streaming,
}

impl Tunnel {
    /// Adds bytes that were sent to the upstream (`up`) and to the client (`down`) to the record.
    pub(crate) fn moved(&mut self, up: usize, down: usize) {
        self.request.record.sent(up as u64);
        self.request.record.received(down);
    }
}

impl Reply {
    /// Returns a reply with a text of the gateway itself.
    pub(crate) fn local(status: StatusCode, fields: Fields, words: impl Into<Bytes>) -> Self {
        let words = words.into();
        let framing = Framing::Length(words.len() as u64);
        let body = if words.is_empty() { Answer::Empty } else { Answer::Local(words) };
        Self { status, reason: Vec::new(), fields, framing, close: false, body }
    }

    /// Returns this reply with the client's connection closed after it.
    pub(crate) fn closing(mut self) -> Self {
        self.close = true;
        self
    }
}

impl Answer {
    /// Returns the next piece of the body. Must not be polled after the end of the body.
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

    /// Sends the rest of the request's body upstream while the client cannot take more of the
    /// answer. `unread` returns the number of bytes of the answer that the client has not taken
    /// yet. Completes if the request was stopped because its client was slow.
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

    /// Returns whether the engine stopped the request in the middle of this answer.
    pub(crate) const fn was_stopped(&self) -> bool {
        matches!(self, Self::Stream(stream) if stream.was_stopped())
    }

    /// Returns the pacing of the answer's bytes, if a rule for an elephant throttles them.
    pub(crate) fn pacing(&mut self) -> Option<&mut Paced> {
        match self {
            Self::Stream(stream) => stream.pacing(),
            Self::Empty | Self::Local(_) | Self::Later(_) | Self::Tunnel(_) => None,
        }
    }

    /// Returns whether the next piece may take so long that the caller must watch for the client's
    /// disconnect.
    pub(crate) const fn is_watched(&self) -> bool {
        matches!(self, Self::Later(_))
    }

    /// Returns the body for the reply to a `HEAD` request: without the gateway's own text, whose
    /// length stays in the head.
    pub(crate) fn without_body(self) -> Self {
        match self {
            Self::Local(_) | Self::Later(_) => Self::Empty,
            other => other,
        }
    }
}
