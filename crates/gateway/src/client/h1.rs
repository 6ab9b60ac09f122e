//! HTTP/1 with a client: one request after another on a connection, each answered before the next
//! is looked at.
//!
//! **Framing.** A head is parsed once, strictly (`bywash_message`); what it says about the body is
//! the only thing that decides where the body ends. After any fault in it nothing more of the
//! connection is understood: the fault is answered and the connection closed. So it is after an
//! answer whose request still has a body to send: what little is left of it is read and thrown
//! away, or the connection ends.
//!
//! **Ending.** Closing a socket that has unread bytes resets it, and a reset can overtake the
//! answer. So an answer that ends a connection early is followed by a short while of reading
//! (RFC 9112 §9.6).

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::io;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use bywash_message::{Decoder, Fault, Fields, Framing, Head, Limits, Part, Request};
use http::{Method, StatusCode, Version};

use super::pace::Pace;
use super::{Back, Body, Handler, Phase};
use crate::body::{BodyError, Piece};
use crate::reply::{Answer, Reply, Tunnel};
use crate::stream::Stream;
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

/// The answer did not get through: it broke off, or its client has gone or is too slow.
struct Broken;

/// How an HTTP/2 connection with prior knowledge begins (RFC 9113 §3.4).
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// Of a body that nobody wants so much is read, and for so long, to keep the connection.
const UNWANTED: u64 = 64 * 1024;
const DISCARDS: Duration = Duration::from_secs(10);

/// What is read after the last answer, so that the client can read it; and for how long.
const LINGERING: usize = 1024 * 1024;
const LINGERS: Duration = Duration::from_secs(2);

/// Data up to this size is copied out of the buffer that it was read into rather than keeping it.
const COPIED: usize = 4096;

impl Conn {
    fn new(stream: Stream, input: BytesMut, limits: Limits) -> Rc<Self> {
        let decoder = Decoder::new(Framing::None, &limits);
        let incoming = Incoming { decoder, awaits_continue: false, pace: Pace::default() };
        Rc::new(Self {
            wire: RefCell::new(Wire::new(stream, input)),
            incoming: RefCell::new(incoming),
            answered: Cell::new(false),
            old: Cell::new(false),
            upgrades: Cell::new(false),
            limits,
        })
    }

    /// The next head, or why there is none.
    async fn next(&self, handler: &impl Handler, is_first: bool) -> Next {
        let mut head = Head::default();
        if !is_first {
            let mut wire = self.wire.borrow_mut();
            wire.rest();
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
        self.answered.set(false);
        self.old.set(request.version == Version::HTTP_10);
        self.upgrades.set(request.upgrades);
        Asked {
            head: request.method == Method::HEAD,
            old: self.old.get(),
            keep_alive: request.keep_alive,
        }
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
            if let Some(piece) = decode(decoder, &mut wire.input).map_err(BodyError::Malformed)? {
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

    /// Writes an answer. Says whether another request may follow.
    async fn answer(&self, handler: &impl Handler, reply: Reply, asked: Asked) -> After {
        let Reply { status, reason, fields, framing, close, body } = reply;
        let framing =
            if asked.old && framing == Framing::Chunked { Framing::UntilClose } else { framing };
        let close = close
            || !asked.keep_alive
            || framing == Framing::UntilClose
            || handler.is_stopping()
            || self.speaks_on(&body)
            || !self.body_may_be_discarded(&body);
        let connection = match &body {
            Answer::Tunnel(_) => Some("upgrade"),
            _ if close => Some("close"),
            _ if asked.old => Some("keep-alive"),
            _ => None,
        };
        self.answered.set(true);
        let write = |out| {
            bywash_message::write_response(out, status, &reason, &fields, framing, connection);
        };
        write(self.wire.borrow_mut().out());
        let body = if asked.head { body.without_body() } else { body };
        self.finish(handler, body, framing, close).await
    }

    /// Whether there are bytes behind a wish for another protocol that was not granted: they may be
    /// of that protocol, whose words must not be taken for a request.
    fn speaks_on(&self, body: &Answer) -> bool {
        let granted = matches!(body, Answer::Tunnel(_));
        self.upgrades.get() && !granted && !self.wire.borrow().input.is_empty()
    }

    async fn finish(
        &self,
        handler: &impl Handler,
        body: Answer,
        framing: Framing,
        close: bool,
    ) -> After {
        if let Answer::Tunnel(tunnel) = body {
            handler.enter(Phase::Tunnel);
            if self.tunnel(*tunnel).await.is_ok() {
                self.linger().await;
            }
            return After::Close;
        }
        let ours = matches!(body, Answer::Empty | Answer::Local(_));
        // A part must not look like the whole, and without a length only a reset tells: whatever
        // ends this early.
        if framing == Framing::UntilClose {
            self.wire.borrow().stream.resets_on_close(true);
        }
        if self.stream(handler, body, framing).await.is_err() {
            return After::Close;
        }
        if framing == Framing::UntilClose {
            self.wire.borrow().stream.resets_on_close(false);
        }
        let is_read = self.incoming.borrow().decoder.is_ended();
        // An upstream that answers early may not want the rest; it might want it all the same.
        if !close && (is_read || ours && self.discard(UNWANTED as usize).await) {
            return After::Again;
        }
        self.linger().await;
        After::Close
    }

    /// Whether the connection can be kept though the request was not read to its end. As long as
    /// an answer of the upstream's comes the body may yet go there.
    fn body_may_be_discarded(&self, body: &Answer) -> bool {
        let incoming = self.incoming.borrow();
        match body {
            Answer::Stream(_) | Answer::Tunnel(_) => true,
            Answer::Empty | Answer::Local(_) | Answer::Later(_) => {
                let is_small = || incoming.decoder.left().is_some_and(|left| left <= UNWANTED);
                incoming.decoder.is_ended() || (!incoming.awaits_continue && is_small())
            }
        }
    }

    /// Writes the body, as fast as it comes and the client reads.
    async fn stream(
        &self,
        handler: &impl Handler,
        mut body: Answer,
        framing: Framing,
    ) -> Result<(), Broken> {
        let chunked = framing == Framing::Chunked;
        let (mut pace, mut ended, mut broken) = (Pace::new(handler.body_rate()), false, false);
        poll_fn(|cx| {
            loop {
                let gathered = if ended || broken {
                    Ok(false)
                } else {
                    self.gather(&mut body, cx, chunked, &mut ended)
                };
                // What came before the break still goes out.
                broken |= gathered.is_err();
                let waits = gathered.unwrap_or(false);
                let mut wire = self.wire.borrow_mut();
                let before = wire.pending();
                let flushed = wire.poll_flush(cx).map_err(|_| Broken)?;
                pace.moves(before - wire.pending());
                match flushed {
                    Poll::Ready(()) if broken => return Poll::Ready(Err(Broken)),
                    Poll::Ready(()) if ended => return Poll::Ready(Ok(())),
                    Poll::Ready(()) if waits && body.is_watched() => {
                        return wire.poll_left(cx).map(|()| Err(Broken));
                    }
                    Poll::Ready(()) if waits => return Poll::Pending,
                    Poll::Ready(()) => {}
                    Poll::Pending => {
                        ready!(pace.poll_too_slow(cx));
                        handler.dawdles();
                        return Poll::Ready(Err(Broken));
                    }
                }
            }
        })
        .await
    }

    /// Takes pieces of an answer while there is room. Whether it waits for more.
    fn gather(
        &self,
        body: &mut Answer,
        cx: &mut Context<'_>,
        chunked: bool,
        ended: &mut bool,
    ) -> Result<bool, Broken> {
        loop {
            if !self.wire.borrow().has_room() {
                body.poll_upload(cx);
                return Ok(false);
            }
            // The wire is not borrowed here: an answer may go on reading its request's body.
            match body.poll_piece(cx) {
                Poll::Pending => return Ok(true),
                Poll::Ready(Err(_)) => return Err(Broken),
                Poll::Ready(Ok(Piece::Data(data))) => self.wire.borrow_mut().push(data, chunked),
                Poll::Ready(Ok(Piece::End(trailers))) => {
                    if chunked {
                        let mut wire = self.wire.borrow_mut();
                        bywash_message::write_last_chunk(wire.out(), trailers.as_deref());
                    }
                    *ended = true;
                    return Ok(false);
                }
            }
        }
    }

    /// Reads what is left of a body that nobody wants. Whether that was all of it.
    async fn discard(&self, most: usize) -> bool {
        let mut read = 0;
        let rest = poll_fn(|cx| {
            loop {
                if self.incoming.borrow().decoder.is_ended() {
                    return Poll::Ready(true);
                }
                match ready!(self.poll_body(cx)) {
                    Ok(Piece::End(_)) => return Poll::Ready(true),
                    Ok(Piece::Data(data)) if read + data.len() <= most => read += data.len(),
                    Ok(Piece::Data(_)) | Err(_) => return Poll::Ready(false),
                }
            }
        });
        tokio::time::timeout(DISCARDS, rest).await.unwrap_or(false)
    }

    /// Closes so that the client can read what it was told: bytes of its own that arrive after a
    /// close, be it a line end, would make the kernel forget what is still to be sent.
    async fn linger(&self) {
        let shutdown = poll_fn(|cx| self.wire.borrow_mut().poll_shutdown(cx));
        if tokio::time::timeout(LINGERS, shutdown).await.is_err() {
            return;
        }
        let mut read = 0;
        let rest = poll_fn(|cx| {
            let mut wire = self.wire.borrow_mut();
            while read < LINGERING {
                wire.input.clear();
                match ready!(wire.poll_fill(cx)) {
                    Ok(0) | Err(_) => break,
                    Ok(bytes) => read += bytes,
                }
            }
            Poll::Ready(())
        });
        let _ = tokio::time::timeout(LINGERS, rest).await;
    }

    /// Carries bytes both ways until one side has ended or failed.
    async fn tunnel(&self, mut tunnel: Tunnel) -> io::Result<()> {
        let (mut up, mut down) = (Flow::Open, Flow::Open);
        poll_fn(|cx| {
            let mut wire = self.wire.borrow_mut();
            let sent = carry(&mut wire, &mut tunnel.wire, &mut up, cx)?;
            let received = carry(&mut tunnel.wire, &mut wire, &mut down, cx)?;
            tunnel.moved(sent, received);
            // Half a conversation is none (nginx ends it likewise): what was on its way has gone.
            if up == Flow::Closed || down == Flow::Closed {
                return Poll::Ready(Ok(()));
            }
            Poll::Pending
        })
        .await
    }
}

/// One direction of a tunnel.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Flow {
    Open,
    /// The sender has ended, its last bytes are on their way.
    Ending,
    Closed,
}

/// Moves what there is to move from one side to the other.
fn carry(
    from: &mut Wire,
    to: &mut Wire,
    flow: &mut Flow,
    cx: &mut Context<'_>,
) -> io::Result<usize> {
    let mut moved = 0;
    loop {
        if !from.input.is_empty() && to.has_room() {
            moved += from.input.len();
            to.push(from.input.split().freeze(), false);
        }
        if to.poll_flush(cx)?.is_pending() {
            return Ok(moved);
        }
        if !from.input.is_empty() {
            continue;
        }
        match *flow {
            Flow::Open => match from.poll_fill(cx)? {
                Poll::Ready(0) => *flow = Flow::Ending,
                Poll::Ready(_) => {}
                Poll::Pending => return Ok(moved),
            },
            Flow::Ending => {
                if to.poll_shutdown(cx)?.is_ready() {
                    *flow = Flow::Closed;
                }
                return Ok(moved);
            }
            Flow::Closed => return Ok(moved),
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
) -> Ended {
    let conn = Conn::new(stream, input, limits);
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
                (Box::pin(handler.serve(*request, body, back)).await, asked)
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
