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
    /// In one piece: a body may come in pieces of a byte, each of which would pin a buffer. It grows by doubling, up
    /// to what may be read ahead.
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

/// The buffer of what was read ahead, counted against the gateway's whole; given back when sent or dropped.
struct Held {
    worker: Rc<Worker>,
    most: usize,
    most_of_all: usize,
    /// The bytes that the buffer takes.
    bytes: usize,
}

impl Held {
    /// Whether more may be read to what was read.
    fn has_room(&self, read: usize) -> bool {
        let all = self.worker.shared.buffered.load(Ordering::Relaxed);
        self.may_have_more(read) && all < self.most_of_all
    }

    /// Whether so much is less than one request may hold.
    fn may_have_more(&self, read: usize) -> bool {
        read < self.worker.shared.memory.read_ahead(self.most)
    }

    /// How large the buffer for so many bytes is to be.
    fn fits(&self, bytes: usize) -> usize {
        let most = self.worker.shared.memory.read_ahead(self.most);
        bytes.next_power_of_two().min(most.max(bytes))
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
        while !self.ended && self.held.as_ref().is_some_and(|held| held.has_room(self.ahead.len()))
        {
            match ready!(self.poll_body(cx))? {
                Piece::Data(data) => self.keep(&data),
                Piece::End(trailers) => (self.ended, self.trailers) = (true, trailers),
            }
        }
        if !self.ended {
            self.body.pauses();
        }
        Poll::Ready(Ok(()))
    }

    /// Keeps a piece that was read ahead.
    fn keep(&mut self, data: &[u8]) {
        let Some(held) = &mut self.held else { return };
        let length = self.ahead.len() + data.len();
        if length > self.ahead.capacity() {
            let mut larger = BytesMut::with_capacity(held.fits(length));
            larger.extend_from_slice(&self.ahead);
            held.add(larger.capacity() - self.ahead.capacity());
            self.ahead = larger;
        }
        self.ahead.extend_from_slice(data);
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
        !self.ended && self.held.as_ref().is_some_and(|held| held.may_have_more(self.ahead.len()))
    }

    /// Whether there is no memory at present to hold what has come of it until the rest comes.
    pub(super) fn is_too_much(&self) -> bool {
        let read = self.ahead.len() as u64;
        let refuses = |held: &Held| held.worker.shared.memory.refuses_body(Some(read));
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
