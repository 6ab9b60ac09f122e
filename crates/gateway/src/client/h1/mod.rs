//! HTTP/1 with a client. Requests on a connection are processed in turn: the next one is parsed
//! only after the response to the one before it.
//!
//! **Framing.** A head is parsed once, strictly (`bywash_message`), and alone determines where the
//! body ends. After an error in a head the rest of the connection cannot be understood. So the
//! error is answered and the connection closed. The connection also ends after a response whose
//! request body has not arrived completely, unless the rest is small enough to be read and
//! discarded.
//!
//! This file reads heads and bodies. `answer.rs` writes responses, and `tunnel.rs` carries other
//! protocols.

mod answer;
mod tunnel;

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use bytes::{Buf, BytesMut};
use bywash_message::{Decoder, Fields, Framing, Head, Limits, ParseError, Request};
use bywash_shaper::Mark;
use http::{Method, StatusCode, Version};

use super::Handler;
use super::minimum_rate::MinimumRate;
use crate::connections::Phase;
use crate::io::body::{Body, BodyError, Incoming as ClientBody, Piece, decode};
use crate::io::stream::Stream;
use crate::io::wire::Wire;
use crate::process::memory::{MemoryReservation, REQUEST};
use crate::request::ClientConnection;
use crate::request::reply::Reply;
use crate::upstream::PinnedLink;

/// A client connection that speaks HTTP/1.
pub(crate) struct Conn {
    wire: RefCell<Wire>,
    incoming: RefCell<Incoming>,
    /// Whether the head of the final response has been written, so that no interim response may
    /// follow.
    answered: Cell<bool>,
    /// Whether the present request is HTTP/1.0, which has no interim responses.
    old: Cell<bool>,
    /// Whether the present request asks to upgrade to another protocol.
    upgrades: Cell<bool>,
    /// The lane of the network device that the connection was last put into.
    mark: Cell<Mark>,
    /// The upstream connection that only this client connection uses, if there is one.
    pin: PinnedLink,
    /// The memory charged for the present request.
    request: RefCell<MemoryReservation>,
    limits: Limits,
}

/// The body of the present request.
struct Incoming {
    decoder: Decoder,
    /// Whether the client waits for `100 Continue` before it sends the body, and that has not been
    /// sent.
    awaits_continue: bool,
    minimum_rate: MinimumRate,
}

/// The way in which serving a connection as HTTP/1 has ended.
pub(crate) enum Ended {
    /// The connection has ended.
    Closed,
    /// The client uses HTTP/2 with prior knowledge. Contains the connection and the bytes read from
    /// it so far.
    Http2(Stream, BytesMut),
}

enum Next {
    Request(Box<Request>),
    Malformed(ParseError),
    TooSlow,
    Http2,
    Closed,
}

/// The properties of a request that its response depends on.
#[derive(Clone, Copy)]
struct RequestTraits {
    head: bool,
    old: bool,
    keep_alive: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum After {
    Again,
    Close,
}

/// The bytes that begin an HTTP/2 connection with prior knowledge (RFC 9113 §3.4).
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// The maximum number of bytes that are read beyond a waiting request, to detect that its client
/// ends TLS.
const AHEAD: usize = 4096;

impl Conn {
    fn new(stream: Stream, input: BytesMut, limits: Limits, held: MemoryReservation) -> Rc<Self> {
        let decoder = Decoder::new(Framing::None, &limits);
        let request = RefCell::new(held.memory().hold(0));
        let incoming =
            Incoming { decoder, awaits_continue: false, minimum_rate: MinimumRate::default() };
        Rc::new(Self {
            wire: RefCell::new(Wire::new(stream, input, held)),
            incoming: RefCell::new(incoming),
            answered: Cell::new(false),
            old: Cell::new(false),
            upgrades: Cell::new(false),
            mark: Cell::default(),
            pin: PinnedLink::default(),
            request,
            limits,
        })
    }

    /// Reads the next request head. Returns the parsed request, or the reason why there is none.
    async fn next(&self, handler: &impl Handler, is_first: bool) -> Next {
        let mut head = Head::default();
        if !is_first {
            let mut wire = self.wire.borrow_mut();
            wire.release_idle_buffers();
            self.request.borrow_mut().set(0);
            handler.enter(if wire.input.is_empty() { Phase::Idle } else { Phase::Head });
        }
        let sniffs = is_first && handler.speaks_http2();
        poll_fn(|cx| {
            let mut wire = self.wire.borrow_mut();
            loop {
                if let Some(next) = self.understand(&mut wire.input, &mut head, sniffs) {
                    return Poll::Ready(next);
                }
                if handler.is_too_slow() {
                    // A connection that a browser opened in advance and that never sent a byte is
                    // closed without a response.
                    let silent = wire.input.is_empty();
                    return Poll::Ready(if silent { Next::Closed } else { Next::TooSlow });
                }
                let room = self.limits.bytes + self.limits.target;
                match ready!(wire.poll_fill_up_to(cx, room)) {
                    Ok(0) | Err(_) => return Poll::Ready(Next::Closed),
                    Ok(_) => handler.enter(Phase::Head),
                }
            }
        })
        .await
    }

    /// Parses the head in the bytes read so far, and removes it from `input`. Returns `None` if
    /// more bytes are needed. `sniffs` says whether the bytes may be the HTTP/2 preface.
    fn understand(&self, input: &mut BytesMut, head: &mut Head, sniffs: bool) -> Option<Next> {
        if input.is_empty() {
            return None;
        }
        if sniffs && PREFACE.starts_with(&input[..input.len().min(PREFACE.len())]) {
            return (input.len() >= PREFACE.len()).then_some(Next::Http2);
        }
        match head.end(input, &self.limits) {
            Ok(None) => None,
            Ok(Some(end)) => {
                let parsed = Request::parse(&input[..end], &self.limits);
                input.advance(end);
                Some(
                    parsed.map_or_else(Next::Malformed, |request| Next::Request(Box::new(request))),
                )
            }
            Err(error) => Some(Next::Malformed(error)),
        }
    }

    fn begin(&self, request: &Request, rate: u64) -> RequestTraits {
        let mut incoming = self.incoming.borrow_mut();
        incoming.decoder = Decoder::new(request.framing, &self.limits);
        incoming.awaits_continue = request.expects_continue && !incoming.decoder.is_ended();
        incoming.minimum_rate = MinimumRate::new(rate);
        self.request.borrow_mut().set(REQUEST);
        self.answered.set(false);
        self.old.set(request.version == Version::HTTP_10);
        self.upgrades.set(request.upgrades);
        RequestTraits {
            head: request.method == Method::HEAD,
            old: self.old.get(),
            keep_alive: request.keep_alive,
        }
    }

    /// Waits for the response to a request. Returns `None` if the client has left by ending TLS
    /// (`close_notify`) while the TCP connection stays open. Only reading from the connection shows
    /// this.
    async fn unless_left(
        &self,
        handler: &impl Handler,
        mut serving: Pin<Box<impl Future<Output = Reply>>>,
    ) -> Option<Reply> {
        let is_tls = self.wire.borrow().stream.is_tls();
        let watches = is_tls && handler.leaves_by_ending_tls() && !self.upgrades.get();
        poll_fn(|cx| {
            if watches && self.has_ended(cx) {
                return Poll::Ready(None);
            }
            serving.as_mut().poll(cx).map(Some)
        })
        .await
    }

    /// Returns whether the client has ended its sending side. To see that, at most [`AHEAD`] bytes
    /// of further requests are read. Returns `false` while a body is incomplete: the reader of the
    /// body sees the end then.
    fn has_ended(&self, cx: &mut Context<'_>) -> bool {
        if !self.incoming.borrow().decoder.is_ended() {
            return false;
        }
        let mut wire = self.wire.borrow_mut();
        while wire.input.len() < AHEAD {
            match wire.poll_fill_up_to(cx, AHEAD) {
                Poll::Pending => return false,
                Poll::Ready(Ok(0) | Err(_)) => return true,
                Poll::Ready(Ok(_)) => {}
            }
        }
        false
    }

    /// Returns the next piece of the present request's body. Sends `100 Continue` first if the
    /// client waits for that. Returns an error if the body is malformed, breaks off, or arrives too
    /// slowly.
    fn poll_body(&self, cx: &mut Context<'_>) -> Poll<Result<Piece, BodyError>> {
        let mut incoming = self.incoming.borrow_mut();
        let Incoming { decoder, awaits_continue, minimum_rate } = &mut *incoming;
        let mut wire = self.wire.borrow_mut();
        if std::mem::take(awaits_continue) && !self.answered.get() {
            wire.out().extend_from_slice(CONTINUE);
            // If the socket does not take all of it now, the rest is sent with the response.
            let _ = wire.poll_flush(cx);
        }
        loop {
            let piece = decode(decoder, &mut wire.input).map_err(BodyError::Malformed)?;
            // Release the input buffer, because the request may wait for a long time while it holds
            // the piece.
            wire.release_idle_buffers();
            if let Some(piece) = piece {
                return Poll::Ready(Ok(piece));
            }
            match wire.poll_fill(cx) {
                Poll::Ready(Ok(0) | Err(_)) => return Poll::Ready(Err(BodyError::BrokenOff)),
                Poll::Ready(Ok(bytes)) => minimum_rate.record_bytes(bytes),
                // After the response has begun, both sides may pause as long as they like.
                Poll::Pending if self.answered.get() => return Poll::Pending,
                Poll::Pending => {
                    let slow = minimum_rate.poll_too_slow(cx);
                    return slow.map(|()| Err(BodyError::TooSlow));
                }
            }
        }
    }
}

impl ClientConnection for Conn {
    fn pin(&self) -> Option<&PinnedLink> {
        Some(&self.pin)
    }

    fn interim(&self, cx: &mut Context<'_>, status: StatusCode, fields: &Fields) {
        let mut wire = self.wire.borrow_mut();
        if !self.old.get() && !self.answered.get() && wire.has_room() {
            bywash_message::write_response(wire.out(), status, b"", fields, Framing::None, None);
            let _ = wire.poll_flush(cx);
        }
    }
}

impl ClientBody for Rc<Conn> {
    fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Result<Piece, BodyError>> {
        self.poll_body(cx)
    }
}

/// Returns the body of the present request, which has this framing.
fn body_of(conn: &Rc<Conn>, framing: Framing) -> Body {
    match framing {
        Framing::None | Framing::Length(0) => Body::default(),
        Framing::Length(_) | Framing::Chunked | Framing::UntilClose => Body::new(Rc::clone(conn)),
    }
}

/// Serves the requests of an HTTP/1 connection in turn, until it ends or turns out to be HTTP/2.
/// `input` holds bytes that were read already.
pub(crate) async fn serve(
    stream: Stream,
    input: BytesMut,
    limits: Limits,
    handler: &impl Handler,
    held: MemoryReservation,
) -> Ended {
    let conn = Conn::new(stream, input, limits, held);
    let mut is_first = true;
    loop {
        let (reply, traits) = match conn.next(handler, is_first).await {
            Next::Closed => return Ended::Closed,
            Next::Http2 => break,
            Next::Request(request) => {
                handler.enter(Phase::Busy);
                let traits = conn.begin(&request, handler.body_rate());
                let body = body_of(&conn, request.framing);
                let back = Rc::clone(&conn) as Rc<dyn ClientConnection>;
                // Boxed, so that a connection between requests does not keep the memory that a
                // request needs.
                let serving = Box::pin(handler.serve(*request, body, back));
                match conn.unless_left(handler, serving).await {
                    Some(reply) => (reply, traits),
                    None => return Ended::Closed,
                }
            }
            Next::Malformed(error) => (handler.malformed(error), UNREADABLE),
            Next::TooSlow => (handler.too_slow(), UNREADABLE),
        };
        is_first = false;
        if conn.answer(handler, reply, traits).await == After::Close {
            return Ended::Closed;
        }
    }
    let conn = Rc::into_inner(conn).expect("no request is there that could hold it");
    let wire = conn.wire.into_inner();
    Ended::Http2(wire.stream, wire.input)
}

/// The properties assumed of a request that could not be parsed: its connection closes after the
/// response.
const UNREADABLE: RequestTraits = RequestTraits { head: false, old: false, keep_alive: false };
