//! The body of a request on its way to the upstream: what was read ahead, then the rest.

use std::cell::Cell;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;

use crate::shared::Shared;

pub(crate) struct Upload {
    /// `None`: there is no body.
    body: Option<Incoming>,
    /// In one piece: a body may come in pieces of a byte, each of which would pin a buffer.
    ahead: BytesMut,
    held: Held,
    /// The client sends its body only when it is told to. Reading it would tell it to, and that
    /// must not be before it is admitted.
    expects_continue: bool,
    progress: Progress,
}

/// How many pieces of a body have gone to the upstream; seen from outside while it goes.
#[derive(Clone, Default)]
pub(super) struct Progress(Option<Rc<Cell<u64>>>);

impl Progress {
    pub(super) fn get(&self) -> u64 {
        self.0.as_ref().map_or(0, |pieces| pieces.get())
    }

    fn more(&self) {
        if let Some(pieces) = &self.0 {
            pieces.set(pieces.get() + 1);
        }
    }
}

/// Bytes read ahead, counted against the gateway's whole; given back when sent or dropped.
struct Held {
    shared: Arc<Shared>,
    bytes: usize,
}

impl Held {
    fn has_room(&self) -> bool {
        let queue = self.shared.config.queue;
        self.bytes < queue.body_buffer
            && self.shared.buffered.load(Ordering::Relaxed) < queue.body_buffer_total
    }

    fn add(&mut self, bytes: usize) {
        self.bytes += bytes;
        self.shared.buffered.fetch_add(bytes, Ordering::Relaxed);
    }

    fn release(&mut self, bytes: usize) {
        self.bytes -= bytes;
        self.shared.buffered.fetch_sub(bytes, Ordering::Relaxed);
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.release(self.bytes);
    }
}

impl Upload {
    pub(crate) fn new(body: Incoming, expects_continue: bool, shared: &Arc<Shared>) -> Self {
        let pieces = (!body.is_end_stream()).then(Rc::default);
        Self {
            progress: Progress(pieces),
            body: Some(body),
            ahead: BytesMut::new(),
            held: Held { shared: Arc::clone(shared), bytes: 0 },
            expects_continue,
        }
    }

    /// No body at all.
    pub(crate) fn empty(shared: &Arc<Shared>) -> Self {
        let held = Held { shared: Arc::clone(shared), bytes: 0 };
        let (ahead, progress) = (BytesMut::new(), Progress::default());
        Self { body: None, ahead, held, expects_continue: false, progress }
    }

    /// Whether all of it has been read from the client.
    pub(crate) fn is_read(&self) -> bool {
        self.body.as_ref().is_none_or(Body::is_end_stream)
    }

    /// How far it has got; to be kept while the upload is sent.
    pub(super) fn progress(&self) -> Progress {
        self.progress.clone()
    }

    /// Reads ahead while there is room. Ready when there is nothing more to read, or not now.
    pub(crate) fn poll_ahead(&mut self, cx: &mut Context<'_>) -> Poll<hyper::Result<()>> {
        let Some(body) = self.body.as_mut().filter(|_| !self.expects_continue) else {
            return Poll::Ready(Ok(()));
        };
        while !body.is_end_stream() && self.held.has_room() {
            match ready!(Pin::new(&mut *body).poll_frame(cx)) {
                // Trailers are not passed on: nobody has announced them to the upstream.
                Some(Ok(frame)) => {
                    let data = frame.data_ref().map_or(&[][..], Bytes::as_ref);
                    self.held.add(data.len());
                    self.ahead.extend_from_slice(data);
                }
                Some(Err(error)) => return Poll::Ready(Err(error)),
                None => break,
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl Body for Upload {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let this = self.get_mut();
        let frame = if !this.ahead.is_empty() {
            this.held.release(this.ahead.len());
            Some(Ok(Frame::data(std::mem::take(&mut this.ahead).freeze())))
        } else if let Some(body) = &mut this.body {
            ready!(Pin::new(body).poll_frame(cx))
        } else {
            None
        };
        if let Some(Ok(_)) = &frame {
            this.progress.more();
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.ahead.is_empty() && self.is_read()
    }

    fn size_hint(&self) -> SizeHint {
        let none = || SizeHint::with_exact(0);
        let rest = self.body.as_ref().map_or_else(none, Body::size_hint);
        let held = self.held.bytes as u64;
        let mut hint = SizeHint::new();
        hint.set_lower(rest.lower() + held);
        if let Some(upper) = rest.upper() {
            hint.set_upper(upper + held);
        }
        hint
    }
}
