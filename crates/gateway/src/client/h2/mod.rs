//! HTTP/2 with a client. The `h2` library implements the protocol; this module turns each stream
//! into a request.
//!
//! All requests of a connection are polled inside the connection's own future. When the client
//! leaves, that future is dropped, and every request with it. A stream that the client resets drops
//! only its own request.
//!
//! **Floods.** The library bounds what it stores. `flood/` counts frames as they are read. It ends
//! a connection whose frames only cost work (GOAWAY with `ENHANCE_YOUR_CALM`).

mod send;

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use bywash_message::{Fields, Framing, Limits, Request};
use futures_util::stream::{FuturesUnordered, StreamExt};
use h2::server::{Builder, Connection, SendResponse};
use h2::{Reason, RecvStream};
use http::{Method, Response, StatusCode};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::flood::{Answers, Frames};
use super::linger::Linger;
use super::minimum_rate::MinimumRate;
use super::{Handler, Plane};
use crate::connections::Phase;
use crate::io::body::{Body, BodyError, Incoming as ClientBody, Piece};
use crate::io::stream::Stream;
use crate::process::memory;
use crate::process::memory::MemoryReservation;
use crate::request::ClientConnection;
use crate::telemetry::metrics::Flood;
use crate::upstream::PinnedLink;

/// The flow-control window for the body of one request, in bytes. The window of a connection is
/// this times its maximum number of streams, so that no body that waits in the queue blocks
/// another.
const STREAM_WINDOW: u32 = 64 * 1024;

/// The flow-control window for the body of one request while memory is short, in bytes.
const LITTLE_WINDOW: u32 = 8 * 1024;

/// The initial window of a connection in bytes, which is also the smallest possible (RFC 9113
/// §6.9.2).
const LEAST_CONNECTION_WINDOW: u32 = 65_535;

/// The largest possible window in bytes (RFC 9113 §6.9.1).
const MOST_WINDOW: u32 = (1 << 31) - 1;

/// The maximum number of bytes of one stream's response that the library buffers to be sent.
const SEND_BUFFER: usize = 64 * 1024;

/// The maximum number of streams that a client may have reset before this module has accepted them.
/// It is equal to the library's default, and set here because the flood tests rely on it.
const PENDING_RESETS: usize = 20;

/// The maximum number of streams per connection that a client may make the server reset by
/// malformed fields, a wrong length, or data beyond the window (CVE-2025-8671). The library's
/// default is 1,024.
const LOCAL_RESETS: usize = 256;

/// The library's budget for small DATA frames, in its own measure. With the library's default, a
/// slow upstream would end the connection of a client that streams messages of a few bytes.
/// `flood/` counts that kind of flood.
const DATA_FRAMES: usize = 4 << 20;

/// The length of the client's connection preface in bytes (RFC 9113 §3.4).
const PREFACE: usize = 24;

/// The time limit for sending GOAWAY to a client whose connection is ended because of a flood.
const GOAWAY_TIMEOUT: Duration = Duration::from_secs(1);

/// The body of a request, as it arrives on an HTTP/2 stream.
pub(crate) struct Incoming {
    body: RecvStream,
    minimum_rate: MinimumRate,
    /// Whether the client waits for `100 Continue` before it sends the body, and that has not been
    /// sent.
    awaits_continue: bool,
    outgoing: Rc<Outgoing>,
    /// The number of bytes that the client may send while the gateway does not read the body: the
    /// window, or the announced length if that is less.
    fills: usize,
    /// The memory charged for the window. It is `fills` bytes while the body is not being read. It
    /// is zero once everything that has arrived was taken.
    window: MemoryReservation,
}

/// The sending side of a stream, for interim responses and the final one.
pub(crate) struct Outgoing {
    respond: RefCell<SendResponse<Bytes>>,
    /// Whether the head of the final response has been sent.
    answered: Cell<bool>,
}

impl ClientBody for Incoming {
    fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Result<Piece, BodyError>> {
        if std::mem::take(&mut self.awaits_continue) {
            self.outgoing.inform(StatusCode::CONTINUE, &Fields::new());
        }
        match self.body.poll_data(cx) {
            Poll::Ready(Some(Ok(data))) => {
                self.minimum_rate.record_bytes(data.len());
                // The window is reopened at once: the reader bounds the memory, because it does not
                // poll for more than it can keep.
                let _ = self.body.flow_control().release_capacity(data.len());
                self.pauses();
                Poll::Ready(Ok(Piece::Data(data)))
            }
            Poll::Ready(Some(Err(_))) => Poll::Ready(Err(BodyError::BrokenOff)),
            Poll::Ready(None) => self.poll_trailers(cx),
            Poll::Pending => {
                self.window.set(0);
                // After the response has begun, both sides may pause as long as they like.
                if self.outgoing.answered.get() {
                    return Poll::Pending;
                }
                self.minimum_rate.poll_too_slow(cx).map(|()| Err(BodyError::TooSlow))
            }
        }
    }

    /// Charges the window to the memory budget, because the client may fill the window while the
    /// body is not read.
    fn pauses(&mut self) {
        self.window.set(self.fills);
    }
}

impl Incoming {
    fn poll_trailers(&mut self, cx: &mut Context<'_>) -> Poll<Result<Piece, BodyError>> {
        let trailers = ready!(self.body.poll_trailers(cx)).map_err(|_| BodyError::BrokenOff)?;
        self.window.set(0);
        let fields = trailers.as_ref().map(Fields::from_trailers);
        Poll::Ready(Ok(Piece::End(fields.map(Box::new))))
    }
}

impl ClientConnection for Outgoing {
    fn pin(&self) -> Option<&PinnedLink> {
        None
    }

    fn interim(&self, _cx: &mut Context<'_>, status: StatusCode, fields: &Fields) {
        self.inform(status, fields);
    }
}

impl Outgoing {
    /// Sends an interim response (1xx), unless the final response has begun.
    fn inform(&self, status: StatusCode, fields: &Fields) {
        if self.answered.get() {
            return;
        }
        let mut response = Response::new(());
        *response.status_mut() = status;
        *response.headers_mut() = fields.to_header_map();
        // An error means that the client has left, which is detected elsewhere.
        let _ = self.respond.borrow_mut().send_informational(response);
    }

    /// Completes when the client has reset the stream. Pending otherwise.
    fn poll_reset(&self, cx: &mut Context<'_>) -> Poll<()> {
        self.respond.borrow_mut().poll_reset(cx).map(|_| ())
    }
}

/// Serves the requests of an HTTP/2 connection until it ends. `input` holds bytes that were read
/// already.
pub(super) async fn serve(stream: Stream, input: BytesMut, limits: Limits, handler: Rc<Plane>) {
    let flood = Rc::default();
    let unsent = Rc::new(Unsent(RefCell::new(handler.hold(0))));
    let _held = handler.hold(memory::HTTP2);
    let window = handler.window(STREAM_WINDOW, LITTLE_WINDOW);
    let io = Guarded {
        stream,
        ahead: input,
        frames: Frames::new(handler.streams(), handler.is_shared(), handler.list_limit()),
        out: Answers::default(),
        preface: PREFACE,
        clock: handler.clock(),
        flood: Rc::clone(&flood),
        unsent: Rc::clone(&unsent),
        handler: Rc::clone(&handler),
        linger: Linger::default(),
    };
    let handshake = builder(&limits, &handler, window).handshake::<_, Bytes>(io);
    let Ok(connection) = handshake.await else { return };
    let requests = FuturesUnordered::new();
    Session { connection, flood, limits, handler, window, unsent, requests }.run().await;
}

fn builder(limits: &Limits, handler: &Plane, window: u32) -> Builder {
    let streams = handler.streams();
    // A connection that many users share has no limit here, because the limit would count the
    // resets of all users together.
    let local_resets = if handler.is_shared() { None } else { Some(LOCAL_RESETS) };
    let mut builder = Builder::new();
    builder
        .initial_window_size(window)
        .initial_connection_window_size(connection_window(window, streams))
        .max_concurrent_streams(streams)
        .max_header_list_size(u32::try_from(limits.bytes + limits.target).unwrap_or(u32::MAX))
        .max_send_buffer_size(SEND_BUFFER)
        .max_pending_accept_reset_streams(PENDING_RESETS)
        .max_local_error_reset_streams(local_resets)
        .data_frame_budget(DATA_FRAMES);
    builder
}

/// Returns the window of a connection in bytes: one stream's window for each stream that the
/// connection may have open.
fn connection_window(window: u32, streams: u32) -> u32 {
    window.saturating_mul(streams).clamp(LEAST_CONNECTION_WINDOW, MOST_WINDOW)
}

struct Session {
    connection: Connection<Guarded, Bytes>,
    flood: Rc<Cell<Option<Flood>>>,
    limits: Limits,
    handler: Rc<Plane>,
    /// The initial window of new streams, in bytes.
    window: u32,
    unsent: Rc<Unsent>,
    requests: FuturesUnordered<Pin<Box<dyn Future<Output = ()>>>>,
}

impl Session {
    async fn run(mut self) {
        let mut stopping = false;
        poll_fn(|cx| {
            if self.flood.get().is_some() || self.handler.makes_room() {
                return Poll::Ready(());
            }
            let ends = self.handler.is_stopping() || self.handler.closes();
            if ends && !std::mem::replace(&mut stopping, true) {
                self.connection.graceful_shutdown();
            }
            self.poll(cx)
        })
        .await;
        if self.handler.makes_room() {
            // Send only what the socket takes at once: there is no time to wait for the client.
            self.connection.abrupt_shutdown(Reason::NO_ERROR);
            poll_fn(|cx| Poll::Ready(self.connection.poll_closed(cx).is_ready())).await;
        } else if let Some(flood) = self.flood.get() {
            self.handler.flooded(flood);
            self.requests.clear();
            self.connection.abrupt_shutdown(Reason::ENHANCE_YOUR_CALM);
            let until_closed = poll_fn(|cx| self.connection.poll_closed(cx));
            let _ = tokio::time::timeout(GOAWAY_TIMEOUT, until_closed).await;
        }
    }

    /// Accepts new requests and polls those that are running. Completes when the connection has
    /// ended.
    ///
    /// The order matters. The connection is polled first, so that a disconnect is seen before the
    /// requests go on. Each response that becomes ready wakes the connection. So responses that
    /// become ready at the same time are sent together when the connection is polled next.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            match self.connection.poll_accept(cx) {
                Poll::Ready(Some(Ok((request, respond)))) => self.begin(request, respond),
                Poll::Ready(Some(Err(_)) | None) => return Poll::Ready(()),
                Poll::Pending => break,
            }
        }
        while let Poll::Ready(Some(())) = self.requests.poll_next_unpin(cx) {
            if self.requests.is_empty() {
                self.handler.enter(Phase::Idle);
            }
        }
        Poll::Pending
    }

    fn begin(&mut self, request: http::Request<RecvStream>, respond: SendResponse<Bytes>) {
        self.handler.enter(Phase::Busy);
        let link = Link {
            handler: Rc::clone(&self.handler),
            limits: self.limits,
            window: self.window,
            unsent: Rc::clone(&self.unsent),
        };
        self.requests.push(Box::pin(exchange(link, request, respond)));
        self.fit_window();
    }

    /// Sets the initial window of streams to what the memory budget allows. The change also applies
    /// to open streams (RFC 9113 §6.9.2). Open streams stay charged with the window that they began
    /// with.
    fn fit_window(&mut self) {
        let window = self.handler.window(STREAM_WINDOW, LITTLE_WINDOW);
        // An error means that the client has not acknowledged the last change yet.
        if window != self.window && self.connection.set_initial_window_size(window).is_ok() {
            let whole = connection_window(window, self.handler.streams());
            self.connection.set_target_window_size(whole);
            self.window = window;
        }
    }
}

/// The parts of a connection that each of its streams needs.
struct Link {
    handler: Rc<Plane>,
    limits: Limits,
    window: u32,
    unsent: Rc<Unsent>,
}

/// An estimate of the response bytes that the library still buffers for exchanges that are over.
/// The library does not report this number. So the bytes that a finished exchange has handed over
/// are added, and DATA bytes sent on any stream are subtracted, because the library sends from all
/// streams in turn.
struct Unsent(RefCell<MemoryReservation>);

impl Unsent {
    fn add(&self, bytes: usize) {
        let mut held = self.0.borrow_mut();
        let all = held.bytes() + bytes;
        held.set(all);
    }

    fn sent(&self, bytes: usize) {
        let mut held = self.0.borrow_mut();
        let all = held.bytes().saturating_sub(bytes);
        held.set(all);
    }
}

/// Returns the number of bytes of its window that a client may fill: no more than the body length
/// that it has announced.
fn fills(window: u32, framing: Framing) -> usize {
    match framing {
        Framing::Length(length) => {
            (window as usize).min(usize::try_from(length).unwrap_or(usize::MAX))
        }
        Framing::None => 0,
        Framing::Chunked | Framing::UntilClose => window as usize,
    }
}

/// Processes one stream: parses the request, waits for its response and sends it. Returns early if
/// the client resets the stream.
async fn exchange(link: Link, request: http::Request<RecvStream>, respond: SendResponse<Bytes>) {
    let Link { handler, limits, window, unsent } = link;
    let _held = handler.hold(memory::REQUEST);
    let (parts, body) = request.into_parts();
    let head = parts.method == Method::HEAD;
    let ends = body.is_end_stream();
    let (respond, answered) = (RefCell::new(respond), Cell::new(false));
    let outgoing = Rc::new(Outgoing { respond, answered });
    let reply = match Request::from_h2(parts, ends, &limits) {
        Ok(request) => {
            let minimum_rate = MinimumRate::new(handler.body_rate());
            let awaits_continue = request.expects_continue;
            let body = if ends {
                Body::default()
            } else {
                let outgoing = Rc::clone(&outgoing);
                let fills = fills(window, request.framing);
                let window = handler.hold(fills);
                let incoming =
                    Incoming { body, minimum_rate, awaits_continue, outgoing, fills, window };
                Body::new(incoming)
            };
            let back = Rc::clone(&outgoing) as Rc<dyn ClientConnection>;
            let mut served = pin!(handler.serve(request, body, back));
            let reply = poll_fn(|cx| match served.as_mut().poll(cx) {
                Poll::Ready(reply) => Poll::Ready(Some(reply)),
                Poll::Pending => outgoing.poll_reset(cx).map(|()| None),
            });
            // `None` means that the client has reset the stream. Dropping the request is all there
            // is to do.
            let Some(reply) = reply.await else { return };
            reply
        }
        Err(error) => handler.malformed(error),
    };
    send::send(&outgoing, reply, head, &handler, &unsent).await;
}

/// The connection as the library reads and writes it. It counts every frame on the way, and stops
/// the reading when the frames are a flood.
struct Guarded {
    stream: Stream,
    /// Bytes that were read before the protocol was known to be HTTP/2. They are returned first.
    ahead: BytesMut,
    frames: Frames,
    out: Answers,
    /// The number of bytes of the preface that have yet to arrive. Frames begin after the preface.
    preface: usize,
    /// The worker's coarse clock, in quarters of a second.
    clock: Rc<Cell<u32>>,
    /// The flood that was detected, for the session to end the connection.
    flood: Rc<Cell<Option<Flood>>>,
    unsent: Rc<Unsent>,
    handler: Rc<Plane>,
    linger: Linger,
}

impl Guarded {
    fn wrote(&mut self, bytes: &[u8]) {
        self.frames.wrote(bytes.len());
        let (answers, carried) = self.out.begin_in(bytes);
        if answers {
            self.handler.record_progress();
        }
        if carried > 0 {
            self.unsent.sent(carried);
        }
    }
}

impl AsyncRead for Guarded {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if this.flood.get().is_some() {
            return Poll::Pending;
        }
        let before = buffer.filled().len();
        if this.ahead.is_empty() {
            ready!(Pin::new(&mut this.stream).poll_read(cx, buffer))?;
        } else {
            let take = this.ahead.len().min(buffer.remaining());
            buffer.put_slice(&this.ahead[..take]);
            this.ahead.advance(take);
        }
        let read = &buffer.filled()[before..];
        let preface = this.preface.min(read.len());
        this.preface -= preface;
        if let Err(flood) = this.frames.note(&read[preface..], this.clock.get() / 4) {
            // Withhold these bytes from the library. The session sees the flood and ends.
            this.flood.set(Some(flood));
            buffer.set_filled(before);
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Guarded {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.stream).poll_write(cx, bytes))?;
        self.wrote(&bytes[..written]);
        Poll::Ready(Ok(written))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        this.linger.poll(&mut this.stream, cx).map(Ok)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.stream).poll_write_vectored(cx, slices))?;
        let mut left = written;
        for slice in slices {
            let part = left.min(slice.len());
            self.wrote(&slice[..part]);
            left -= part;
        }
        Poll::Ready(Ok(written))
    }
}
