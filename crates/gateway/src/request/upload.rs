//! The body of a request on its way to the upstream: what was read ahead, then the rest.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, ready};

use bytes::BytesMut;
use bywash_message::{Fields, Framing};
use bywash_units::Span;

use crate::body::{BodyError, Piece};
use crate::client::Body;
use crate::levels::{self, Levels};
use crate::settings::Settings;
use crate::worker::Worker;

pub(crate) struct Upload {
    body: Body,
    /// In one piece: a body may come in pieces of a byte, each of which would pin a buffer.
    ahead: BytesMut,
    /// `None`: there is no body that could be held.
    held: Option<Held>,
    /// The client sends its body only when it is told to. Reading it would tell it to, and that
    /// must not be before it is admitted.
    expects_continue: bool,
    /// How many bytes more its class lets it have.
    left: u64,
    /// The body has been read to its end.
    ended: bool,
    /// They come after what was read ahead.
    trailers: Option<Box<Fields>>,
    /// A field that goes no further, in trailers either.
    private: Option<Arc<str>>,
}

/// Bytes read ahead, counted against the gateway's whole; given back when sent or dropped.
struct Held {
    worker: Rc<Worker>,
    most: usize,
    most_of_all: usize,
    bytes: usize,
}

impl Held {
    fn has_room(&self) -> bool {
        let all = self.worker.shared.buffered.load(Ordering::Relaxed);
        self.may_have_more() && all < self.most_of_all
    }

    /// Whether it holds less than one request may.
    fn may_have_more(&self) -> bool {
        self.bytes < self.worker.shared.memory.read_ahead(self.most)
    }

    fn add(&mut self, bytes: usize) {
        self.bytes += bytes;
        self.worker.shared.buffered.fetch_add(bytes, Ordering::Relaxed);
        self.worker.shared.memory.add(bytes);
    }

    fn release(&mut self) {
        let bytes = std::mem::take(&mut self.bytes);
        if bytes > 0 {
            self.worker.shared.buffered.fetch_sub(bytes, Ordering::Relaxed);
            self.worker.shared.memory.sub(bytes);
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.release();
    }
}

impl Upload {
    pub(super) fn new(
        body: Body,
        framing: Framing,
        expects_continue: bool,
        most: u64,
        worker: &Rc<Worker>,
        settings: &Settings,
    ) -> Self {
        if matches!(framing, Framing::None | Framing::Length(0)) {
            return Self::none();
        }
        let queue = &settings.config.queue;
        let held = Held {
            worker: Rc::clone(worker),
            most: queue.body_buffer,
            most_of_all: queue.body_buffer_total,
            bytes: 0,
        };
        Self {
            body,
            ahead: BytesMut::new(),
            held: Some(held),
            expects_continue,
            left: most,
            ended: false,
            trailers: None,
            private: settings.levels.as_ref().and_then(Levels::customer_header),
        }
    }

    /// No body at all.
    pub(crate) fn none() -> Self {
        Self {
            body: Body::None,
            ahead: BytesMut::new(),
            held: None,
            expects_continue: false,
            left: 0,
            ended: true,
            trailers: None,
            private: None,
        }
    }

    /// Reads ahead while there is room. Ready when there is nothing more to read, or not now.
    pub(super) fn poll_ahead(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BodyError>> {
        if self.expects_continue {
            return Poll::Ready(Ok(()));
        }
        while !self.ended && self.held.as_ref().is_some_and(Held::has_room) {
            match ready!(self.poll_body(cx))? {
                Piece::Data(data) => {
                    if let Some(held) = &mut self.held {
                        held.add(data.len());
                    }
                    self.ahead.extend_from_slice(&data);
                }
                Piece::End(trailers) => (self.ended, self.trailers) = (true, trailers),
            }
        }
        Poll::Ready(Ok(()))
    }

    /// The next piece from the client, which may send no more than its class lets it.
    fn poll_body(&mut self, cx: &mut Context<'_>) -> Poll<Result<Piece, BodyError>> {
        let piece = ready!(self.body.poll_piece(cx))?;
        if let Piece::Data(data) = &piece {
            let left = self.left.checked_sub(data.len() as u64);
            self.left = left.ok_or(BodyError::TooLarge)?;
        }
        Poll::Ready(Ok(piece))
    }

    /// Whether all of it has been read.
    pub(super) const fn has_ended(&self) -> bool {
        self.ended
    }

    /// Whether the client has sent less than may be held of one request, and not the end.
    pub(super) fn is_awaited(&self) -> bool {
        !self.ended && self.held.as_ref().is_some_and(Held::may_have_more)
    }

    /// Whether there is no memory at present to hold what has come of it until the rest comes.
    pub(super) fn is_too_much(&self) -> bool {
        let refuses = |held: &Held| held.worker.shared.memory.refuses_body(Some(held.bytes as u64));
        !self.ended && self.held.as_ref().is_some_and(refuses)
    }

    /// Returns how many bytes a second have come in that time; `None` if the client was not asked for any.
    pub(super) fn rate(&self, time: Span) -> Option<u64> {
        let rate = self.ahead.len() as f64 / time.as_secs_f64();
        (!self.expects_continue).then_some(rate as u64)
    }

    /// The next piece for the upstream. Not to be asked after the end.
    pub(crate) fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Result<Piece, BodyError>> {
        if !self.ahead.is_empty() {
            if let Some(held) = &mut self.held {
                held.release();
            }
            return Poll::Ready(Ok(Piece::Data(std::mem::take(&mut self.ahead).freeze())));
        }
        let piece =
            if self.ended { Piece::End(self.trailers.take()) } else { ready!(self.poll_body(cx))? };
        Poll::Ready(Ok(match (piece, &self.private) {
            (Piece::End(Some(mut trailers)), Some(name)) => {
                levels::take_out(&mut trailers, name);
                Piece::End(Some(trailers).filter(|trailers| !trailers.is_empty()))
            }
            (piece, _) => piece,
        }))
    }
}
