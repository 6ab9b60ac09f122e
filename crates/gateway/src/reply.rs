//! What goes back to a client: a head, and where the body comes from.

use std::task::{Context, Poll, ready};

use bytes::Bytes;
use bywash_message::{Fields, Framing};
use http::StatusCode;
use tokio::sync::mpsc;

use crate::body::Piece;
use crate::elephants::Paced;
use crate::request::{Stream, Streaming};
use crate::upstream::UpstreamError;
use crate::wire::Wire;

/// An answer, ready to be written.
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    /// The upstream's own words for the status, if it has any.
    pub(crate) reason: Vec<u8>,
    /// Without framing and without what belongs to one connection.
    pub(crate) fields: Fields,
    pub(crate) framing: Framing,
    /// The connection ends with it.
    pub(crate) close: bool,
    pub(crate) body: Answer,
}

/// The body of an answer.
pub(crate) enum Answer {
    /// None.
    Empty,
    /// Our own words.
    Local(Bytes),
    /// Our own words, as they come; the channel's end is theirs.
    Later(mpsc::Receiver<Bytes>),
    /// The upstream's, as it comes.
    Stream(Box<Stream>),
    /// The connection itself: it now speaks another protocol.
    Tunnel(Box<Tunnel>),
}

/// An upstream's connection that speaks another protocol, and what is to be given back at its end.
pub(crate) struct Tunnel {
    pub(crate) wire: Wire,
    pub(crate) request: Streaming,
}

impl Tunnel {
    /// So many bytes went up and down.
    pub(crate) fn moved(&mut self, up: usize, down: usize) {
        self.request.record.sent(up as u64);
        self.request.record.received(down);
    }
}

impl Reply {
    /// Words of our own.
    pub(crate) fn local(status: StatusCode, fields: Fields, words: impl Into<Bytes>) -> Self {
        let words = words.into();
        let framing = Framing::Length(words.len() as u64);
        let body = if words.is_empty() { Answer::Empty } else { Answer::Local(words) };
        Self { status, reason: Vec::new(), fields, framing, close: false, body }
    }

    /// The connection ends with it.
    pub(crate) fn closing(mut self) -> Self {
        self.close = true;
        self
    }
}

impl Answer {
    /// The next piece. Not to be asked after the end.
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

    /// Lets what is left of the request's body go up, though nobody can take the answer just now.
    /// Ready when the request was stopped, as its client takes it too slowly. `unread`: bytes of the answer that the
    /// client has not taken yet.
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

    /// Whether the request was stopped in the middle of this answer.
    pub(crate) const fn was_stopped(&self) -> bool {
        matches!(self, Self::Stream(stream) if stream.was_stopped())
    }

    /// What holds its bytes back, if a rule for elephants does.
    pub(crate) fn held_back(&mut self) -> Option<&mut Paced> {
        match self {
            Self::Stream(stream) => stream.held_back(),
            Self::Empty | Self::Local(_) | Self::Later(_) | Self::Tunnel(_) => None,
        }
    }

    /// Whether it may wait for so long that a client that leaves must be looked for.
    pub(crate) const fn is_watched(&self) -> bool {
        matches!(self, Self::Later(_))
    }

    /// The same answer to a `HEAD`: our own words are only counted.
    pub(crate) fn without_body(self) -> Self {
        match self {
            Self::Local(_) | Self::Later(_) => Self::Empty,
            other => other,
        }
    }
}
