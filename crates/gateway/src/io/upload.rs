//! The body of a request on its way to the upstream: the part that was read ahead, then the rest.

use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::BytesMut;
use bywash_config::Queue;
use bywash_message::{Fields, Framing};
use bywash_units::TimeSpan;

use super::body::{Body, BodyError, Piece};
use crate::process::memory::Memory;

/// A request body that is forwarded to the upstream. A part of it is read ahead while the request
/// waits for a slot.
pub(crate) struct Upload {
    body: Body,
    /// The part of the body that was read ahead, in one buffer. The buffer grows by doubling, up to
    /// the amount that may be read ahead. With a list of pieces, a body that comes byte by byte
    /// would pin a buffer for each byte.
    ahead: BytesMut,
    /// The memory charged for `ahead`; `None` if the request has no body.
    held: Option<ReadAheadMemory>,
    /// Whether the client waits for `100 Continue`. Reading the body would send that, which must
    /// not happen before the request is admitted.
    expects_continue: bool,
    /// The number of bytes of the body that the request's class still allows.
    left: u64,
    /// Whether the body has been read to its end.
    ended: bool,
    /// The trailers of a body that was read to its end; they are forwarded after `ahead`.
    trailers: Option<Box<Fields>>,
    /// The name of a field that must not reach the upstream, not even in trailers; `None` if there
    /// is no such field.
    private: Option<Arc<str>>,
}

/// The memory of the part of one body that was read ahead. It is counted against the gateway's
/// total, and given back when that part is sent or dropped.
struct ReadAheadMemory {
    memory: Arc<Memory>,
    /// The maximum number of bytes that one request may read ahead (`queue.body_buffer`).
    most: usize,
    /// The maximum number of bytes that all requests together may read ahead
    /// (`queue.body_buffer_total`).
    most_of_all: usize,
    /// The number of bytes that are counted now: the capacity of the buffer.
    bytes: usize,
}

impl ReadAheadMemory {
    /// Returns whether this request may read more ahead after `read` bytes, by its own limit and
    /// that of all requests.
    fn has_room(&self, read: usize) -> bool {
        let all = self.memory.read_ahead_by_all();
        self.may_have_more(read) && all < self.most_of_all
    }

    /// Returns whether `read` bytes are less than one request may read ahead.
    fn may_have_more(&self, read: usize) -> bool {
        read < self.memory.read_ahead(self.most)
    }

    /// Returns the capacity for a buffer of at least `bytes` bytes: the next power of two, but no
    /// more than may be read ahead.
    fn fits(&self, bytes: usize) -> usize {
        let most = self.memory.read_ahead(self.most);
        bytes.next_power_of_two().min(most.max(bytes))
    }

    fn add(&mut self, bytes: usize) {
        self.bytes += bytes;
        self.memory.add_read_ahead(bytes);
    }

    fn release(&mut self) {
        let bytes = std::mem::take(&mut self.bytes);
        if bytes > 0 {
            self.memory.sub_read_ahead(bytes);
        }
    }
}

impl Drop for ReadAheadMemory {
    fn drop(&mut self) {
        self.release();
    }
}

impl Upload {
    /// Creates the upload of a body with this framing. The class allows `most` bytes. `queue`
    /// bounds the bytes that are read ahead. A trailer field with the name `private` is not
    /// forwarded.
    pub(crate) fn new(
        body: Body,
        framing: Framing,
        expects_continue: bool,
        most: u64,
        (memory, queue): (&Arc<Memory>, &Queue),
        private: Option<Arc<str>>,
    ) -> Self {
        if matches!(framing, Framing::None | Framing::Length(0)) {
            return Self::none();
        }
        let held = ReadAheadMemory {
            memory: Arc::clone(memory),
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
            private,
        }
    }

    /// Creates the upload of a request without a body.
    pub(crate) fn none() -> Self {
        Self {
            body: Body::default(),
            ahead: BytesMut::new(),
            held: None,
            expects_continue: false,
            left: 0,
            ended: true,
            trailers: None,
            private: None,
        }
    }

    /// Reads ahead until the limits or the end of the body are reached, and then completes. It
    /// completes at once if the client waits for `100 Continue`. Returns an error if the body
    /// cannot be read.
    pub(crate) fn poll_ahead(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BodyError>> {
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

    /// Appends a piece that was read ahead to the buffer, and charges the memory if the buffer
    /// grows.
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

    /// Returns the next piece of the body from the client. Returns an error if the body cannot be
    /// read, or exceeds the size that its class allows.
    fn poll_body(&mut self, cx: &mut Context<'_>) -> Poll<Result<Piece, BodyError>> {
        let piece = ready!(self.body.poll_piece(cx))?;
        if let Piece::Data(data) = &piece {
            let left = self.left.checked_sub(data.len() as u64);
            self.left = left.ok_or(BodyError::TooLarge)?;
        }
        Poll::Ready(Ok(piece))
    }

    /// Returns whether the whole body has been read from the client.
    pub(crate) const fn has_ended(&self) -> bool {
        self.ended
    }

    /// Returns whether the body is still arriving, and less of it was read than one request may
    /// read ahead.
    pub(crate) fn is_awaited(&self) -> bool {
        !self.ended && self.held.as_ref().is_some_and(|held| held.may_have_more(self.ahead.len()))
    }

    /// Returns whether the body is incomplete and the memory budget does not allow the gateway to
    /// hold it until the rest arrives.
    pub(crate) fn is_too_much(&self) -> bool {
        let read = self.ahead.len() as u64;
        let refuses = |held: &ReadAheadMemory| held.memory.refuses_body(Some(read));
        !self.ended && self.held.as_ref().is_some_and(refuses)
    }

    /// Returns the mean rate, in bytes per second, at which the part that was read ahead has
    /// arrived during `time`. Returns `None` if the client still waits for `100 Continue`.
    pub(crate) fn rate(&self, time: TimeSpan) -> Option<u64> {
        let rate = self.ahead.len() as f64 / time.as_secs_f64();
        (!self.expects_continue).then_some(rate as u64)
    }

    /// Returns the next piece for the upstream: first what was read ahead, then what arrives.
    /// Returns an error if the body cannot be read. Must not be called after the end.
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
                trailers.remove_alike(name.as_bytes());
                Piece::End(Some(trailers).filter(|trailers| !trailers.is_empty()))
            }
            (piece, _) => piece,
        }))
    }
}
