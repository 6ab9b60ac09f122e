//! HTTP/1 with a client: one request after another on a connection, each answered before the next
//! is looked at.
//!
//! **Framing.** A head is parsed once, strictly (`bywash_message`); what it says about the body is
//! the only thing that decides where the body ends. After any fault in it nothing more of the
//! connection is understood: the fault is answered and the connection closed. So it is after an
//! answer whose request still has a body to send: what little is left of it is read and thrown
//! away, or the connection ends.
//!
//! Here heads and bodies are read; `answer.rs` writes, `tunnel.rs` carries what is no HTTP.

mod answer;
mod tunnel;

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes, BytesMut};
use bywash_message::{Decoder, Fault, Fields, Framing, Head, Limits, Part, Request};
use bywash_shaper::Mark;
use http::{Method, StatusCode, Version};

use super::pace::Pace;
use super::{Back, Body, Handler, Phase};
use crate::body::{BodyError, Piece};
use crate::memory::{Held, REQUEST};
use crate::reply::Reply;
use crate::stream::Stream;
use crate::upstream::PinnedLink;
use crate::wire::Wire;

/// One client's connection that speaks HTTP/1.
pub(crate) struct Conn {
    wire: RefCell<Wire>,
    incoming: RefCell<Incoming>,
    /// The head of the final answer has been written: nothing may come before it any more.
    answered: Cell<bool>,
    /// HTTP/1.0 knows no answers before the answer.
    old: Cell<bool>,
    /// The present request asks for another protocol.
    upgrades: Cell<bool>,
    /// The lane that the connection was last put into.
    mark: Cell<Mark>,
    /// The connection to a server that goes with this one.
    pin: PinnedLink,
    /// The present request, as it counts against the budget of memory.
    request: RefCell<Held>,
    limits: Limits,
}

/// The body of the present request.
struct Incoming {
    decoder: Decoder,
    /// The client sends it only when it is told to, and has not been told.
    awaits_continue: bool,
    pace: Pace,
}

/// What has become of a connection.
pub(crate) enum Ended {
    /// It is over.
    Closed,
    /// It speaks HTTP/2: the connection, and what was read of it.
    Http2(Stream, BytesMut),
}

enum Next {
    Request(Box<Request>),
    Fault(Fault),
    TooSlow,
    Http2,
    Closed,
}

/// What the answer must know of the request.
#[derive(Clone, Copy)]
struct Asked {
    head: bool,
    old: bool,
    keep_alive: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum After {
    Again,
    Close,
}

/// How an HTTP/2 connection with prior knowledge begins (RFC 9113 §3.4).
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// Data up to this size is copied out of the buffer that it was read into rather than keeping it.
const COPIED: usize = 4096;

/// Bytes that are read beyond a request that waits, to see its client end TLS.
const AHEAD: usize = 4096;

impl Conn {
    fn new(stream: Stream, input: BytesMut, limits: Limits, held: Held) -> Rc<Self> {
        let decoder = Decoder::new(Framing::None, &limits);
        let request = RefCell::new(held.memory().hold(0));
        let incoming = Incoming { decoder, awaits_continue: false, pace: Pace::default() };
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

    pub(super) const fn pin(&self) -> &PinnedLink {
        &self.pin
    }

    /// The next head, or why there is none.
    async fn next(&self, handler: &impl Handler, is_first: bool) -> Next {
        let mut head = Head::default();
        if !is_first {
            let mut wire = self.wire.borrow_mut();
            wire.rest();
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
                    // Who has said nothing is told nothing: it opened a connection to have one.
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

    /// What has been read so far, if it is something.
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
                Some(parsed.map_or_else(Next::Fault, |request| Next::Request(Box::new(request))))
            }
            Err(fault) => Some(Next::Fault(fault)),
        }
    }

    fn begin(&self, request: &Request, rate: u64) -> Asked {
        let mut incoming = self.incoming.borrow_mut();
        incoming.decoder = Decoder::new(request.framing, &self.limits);
        incoming.awaits_continue = request.expects_continue && !incoming.decoder.is_ended();
        incoming.pace = Pace::new(rate);
        self.request.borrow_mut().set(REQUEST);
        self.answered.set(false);
        self.old.set(request.version == Version::HTTP_10);
        self.upgrades.set(request.upgrades);
        Asked {
            head: request.method == Method::HEAD,
            old: self.old.get(),
            keep_alive: request.keep_alive,
        }
    }

    /// Waits for an answer. Returns `None` if the client has left by ending TLS (`close_notify`) while
    /// the connection stays open, which only a reader sees.
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

    /// Returns whether the client has ended its sending side, behind no more than [`AHEAD`] bytes of
    /// requests to come. While there is a body, the reader of the body sees the end.
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

    /// More of the present request's body.
    pub(crate) fn poll_body(&self, cx: &mut Context<'_>) -> Poll<Result<Piece, BodyError>> {
        let mut incoming = self.incoming.borrow_mut();
        let Incoming { decoder, awaits_continue, pace } = &mut *incoming;
        let mut wire = self.wire.borrow_mut();
        if std::mem::take(awaits_continue) && !self.answered.get() {
            wire.out().extend_from_slice(CONTINUE);
            // If it does not all go out now, the rest goes with the answer.
            let _ = wire.poll_flush(cx);
        }
        loop {
            let piece = decode(decoder, &mut wire.input).map_err(BodyError::Malformed)?;
            // Of what was taken nothing is to stay here while the request waits.
            wire.rest();
            if let Some(piece) = piece {
                return Poll::Ready(Ok(piece));
            }
            match wire.poll_fill(cx) {
                Poll::Ready(Ok(0) | Err(_)) => return Poll::Ready(Err(BodyError::BrokenOff)),
                Poll::Ready(Ok(bytes)) => pace.moves(bytes),
                // Behind the beginning of the answer both sides may talk when they like.
                Poll::Pending if self.answered.get() => return Poll::Pending,
                Poll::Pending => {
                    let slow = pace.poll_too_slow(cx);
                    return slow.map(|()| Err(BodyError::TooSlow));
                }
            }
        }
    }

    /// Passes an answer on that comes before the answer (1xx).
    pub(crate) fn interim(&self, cx: &mut Context<'_>, status: StatusCode, fields: &Fields) {
        let mut wire = self.wire.borrow_mut();
        if !self.old.get() && !self.answered.get() && wire.has_room() {
            bywash_message::write_response(wire.out(), status, b"", fields, Framing::None, None);
            let _ = wire.poll_flush(cx);
        }
    }
}

/// Takes the next piece of a body out of what was read. `None`: more must be read.
pub(crate) fn decode(decoder: &mut Decoder, input: &mut BytesMut) -> Result<Option<Piece>, Fault> {
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
            // Data is the last of what was used: framing comes before it.
            let length = data.len();
            input.advance(used - length);
            Ok(Some(Piece::Data(input.split_to(length).freeze())))
        }
    }
}

/// Serves requests until the connection ends.
pub(crate) async fn serve(
    stream: Stream,
    input: BytesMut,
    limits: Limits,
    handler: &impl Handler,
    held: Held,
) -> Ended {
    let conn = Conn::new(stream, input, limits, held);
    let mut is_first = true;
    loop {
        let (reply, asked) = match conn.next(handler, is_first).await {
            Next::Closed => return Ended::Closed,
            Next::Http2 => break,
            Next::Request(request) => {
                handler.enter(Phase::Busy);
                let asked = conn.begin(&request, handler.body_rate());
                let body = Body::of_h1(&conn, request.framing);
                let back = Back::H1(Rc::clone(&conn));
                // By itself: what a request needs, a connection between requests does not keep.
                let serving = Box::pin(handler.serve(*request, body, back));
                match conn.unless_left(handler, serving).await {
                    Some(reply) => (reply, asked),
                    None => return Ended::Closed,
                }
            }
            Next::Fault(fault) => (handler.malformed(fault), FAULTY),
            Next::TooSlow => (handler.too_slow(), FAULTY),
        };
        is_first = false;
        if conn.answer(handler, reply, asked).await == After::Close {
            return Ended::Closed;
        }
    }
    let conn = Rc::into_inner(conn).expect("no request is there that could hold it");
    let wire = conn.wire.into_inner();
    Ended::Http2(wire.stream, wire.input)
}

/// What is known of a request that was not understood.
const FAULTY: Asked = Asked { head: false, old: false, keep_alive: false };
