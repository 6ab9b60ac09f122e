//! The fourth phase: the response is streamed back, and the request ends.
//!
//! The body of the response owns the slot, the upstream connection and the record. It is dropped
//! when the last byte is written or when the client has left, and either way releases all of them.
//!
//! **Streams are counted separately.** A connection that has switched protocols (WebSocket) and a
//! response of server-sent events last as long as a user looks at them, and cost the application
//! almost nothing meanwhile. They give their slot back when they begin, and are counted against
//! `limits.streams` instead.

use std::rc::Rc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use bywash_engine::{AnswerKind, End, Outcome, SessionKey};
use bywash_message::{Fields, Framing, Name, Response};
use bywash_units::Span;
use http::StatusCode;

use super::ClientConnection;
use super::ClientRate;
use super::deadline::Deadline;
use super::forward::Forwarded;
use super::grant;
use super::read_ahead::ReadAhead;
use super::refuse::{self, RefusalFormat};
use super::success::{self, Judged, Sought};
use crate::context::Worker;
use crate::driver::{Progress, Refusal, Ticket};
use crate::elephants::Paced;
use crate::io::body::{BodyError, Piece};
use crate::request::record::Record;
use crate::request::reply::{Answer, Reply, Tunnel};
use crate::shared::CountedPermit;
use crate::static_files::{self, FileKey, Shows};
use crate::upstream::servers::{Failure, Load};
use crate::upstream::{Exchange, Link, Pool, UpstreamError};

/// A request whose response has begun, with everything that must be released at its end.
pub(crate) struct Streaming {
    worker: Rc<Worker>,
    pub(crate) record: Box<Record>,
    /// `None` if the gateway is bypassed, or if the slot was given back already.
    ticket: Option<Ticket>,
    pool: Rc<Pool>,
    /// The client connection that owns an upstream connection which a server has authenticated.
    /// `None`: such a connection is closed.
    owner: Option<Rc<dyn ClientConnection>>,
    load: Option<Load>,
}

/// The body of the upstream's response.
pub(crate) struct Stream {
    exchange: Option<Exchange>,
    deadline: Deadline,
    status: StatusCode,
    /// The session that makes progress by this response.
    served: Option<SessionKey>,
    /// The judgement about the response once it is complete.
    judged: Judged,
    /// Looks for the conditions of success in the body. `None` if the head has decided about
    /// success.
    sought: Option<Box<Sought>>,
    takes_trailers: bool,
    /// The number of bytes of the request's body that had been sent at the last look.
    sent: u64,
    /// The response may pause for any length of time.
    endless: bool,
    /// There was no room for more of the response, because its client was slow to read it.
    held_up: bool,
    /// Bytes of the response that have arrived.
    taken: u64,
    /// The target and the conclusion about it, if the end of the body decides whether it is a file.
    file: Option<(FileKey, Shows)>,
    /// The part of a file that the client has not taken yet.
    ahead: Option<ReadAhead>,
    client: ClientRate,
    /// Delays the bytes if a rule says so.
    paced: Option<Paced>,
    /// `None` once the request has ended.
    running: Option<Streaming>,
}

/// Returns the response for the client. A request whose response has no body ends here.
pub(super) fn answer(
    mut running: Streaming,
    forwarded: Forwarded,
    format: &RefusalFormat,
) -> Reply {
    let Forwarded { exchange, response, mut load, deadline, takes_trailers, client, owner, .. } =
        forwarded;
    let now = running.worker.shared.driver.now();
    let began = load.head_came(now);
    let file = running.record.file().and_then(|file| running.note_file(file, &response, began));
    if !response.status.is_server_error() {
        load.answered(now);
    }
    (running.load, running.owner) = (Some(load), owner);
    if response.status == StatusCode::SWITCHING_PROTOCOLS {
        return switch(running, exchange, response, format);
    }
    let Response { status, reason, mut fields, framing, .. } = response;
    // Delimit the body wherever possible, so that the client can detect a truncated one.
    let framing = if framing == Framing::UntilClose { Framing::Chunked } else { framing };
    let endless = is_event_stream(&fields);
    if endless && !running.becomes_a_stream() {
        return running.has_no_place(format);
    }
    fields.remove_hop_by_hop();
    if !takes_trailers {
        fields.remove(Name::Trailer);
    }
    running.record.is_answered_upstream();
    let (judged, sought) = success::judge(&running.record, status, &mut fields);
    let served = running.session_served(status, judged, &mut fields);
    if endless {
        running.gives_slot_back(served.filter(|_| gets_on(status)), status, judged);
    }
    let permit = running.record.takes_permit();
    let (shared, facts) = (&running.worker.shared, running.record.facts());
    let ahead = permit.map(|permit| ReadAhead::new(shared, permit));
    let paced = shared.elephants.paced(facts.request.rule);
    let mut stream = Stream {
        exchange: Some(exchange),
        deadline,
        status,
        served,
        judged,
        sought: sought.map(Box::new),
        takes_trailers,
        sent: 0,
        endless,
        held_up: false,
        taken: 0,
        file,
        ahead,
        client,
        paced,
        running: Some(running),
    };
    let body = if matches!(framing, Framing::None | Framing::Length(0)) {
        stream.end();
        Answer::Empty
    } else {
        Answer::Stream(Box::new(stream))
    };
    Reply { status, reason, fields, framing, close: false, body }
}

/// Switches to another protocol after the upstream has agreed to it.
fn switch(
    mut running: Streaming,
    exchange: Exchange,
    response: Response,
    format: &RefusalFormat,
) -> Reply {
    let Response { status, reason, mut fields, .. } = response;
    let protocol = fields.get(Name::Upgrade).map(<[u8]>::to_vec);
    let (Some(protocol), Some(wire)) = (protocol, exchange.into_wire()) else {
        return running.fails(&UpstreamError::Switched, format);
    };
    if !running.becomes_a_stream() {
        return running.has_no_place(format);
    }
    running.record.is_answered_upstream();
    fields.remove_hop_by_hop();
    fields.push(b"Upgrade", &protocol);
    let (judged, _) = success::judge(&running.record, status, &mut fields);
    let served = running.session_served(status, judged, &mut fields);
    running.gives_slot_back(served, status, judged);
    running.record.ends(Outcome::Served, status);
    let body = Answer::Tunnel(Box::new(Tunnel { wire, request: running }));
    Reply { status, reason, fields, framing: Framing::None, close: false, body }
}

fn is_event_stream(fields: &Fields) -> bool {
    const KIND: &[u8] = b"text/event-stream";
    let kind = fields.get(Name::ContentType).unwrap_or_default();
    kind.get(..KIND.len()).is_some_and(|kind| kind.eq_ignore_ascii_case(KIND))
}

/// Returns a reusable connection to its pool, or to the one client connection that owns it.
fn gives_back(
    pool: &Rc<Pool>,
    owner: Option<&Rc<dyn ClientConnection>>,
    server: usize,
    link: Link,
) {
    match (link, owner.and_then(|owner| owner.pin())) {
        (Link::H1(link), Some(pin)) if link.is_authenticated() => pin.keep(pool, server, link),
        (link, _) => pool.put(server, link),
    }
}

/// Returns whether a session may make progress by a response with this status. Its [`kind`]
/// decides.
pub(super) fn gets_on(status: StatusCode) -> bool {
    status.is_success() || status.is_redirection()
}

/// Returns the kind of a response with this status.
pub(super) fn kind(status: StatusCode) -> AnswerKind {
    match status {
        StatusCode::NOT_MODIFIED => AnswerKind::NotModified,
        _ if status.is_redirection() => AnswerKind::Redirect,
        _ => AnswerKind::Content,
    }
}

impl Streaming {
    pub(super) fn new(
        worker: Rc<Worker>,
        record: Box<Record>,
        ticket: Option<Ticket>,
        pool: Rc<Pool>,
    ) -> Self {
        Self { worker, record, ticket, pool, owner: None, load: None }
    }

    /// Counts the request as a stream instead of against the concurrency limit, if there is room
    /// for a stream.
    fn becomes_a_stream(&mut self) -> bool {
        let most = self.record.settings().config.limits.streams;
        let permit = CountedPermit::stream(&self.worker.shared, most);
        permit.map(|permit| self.record.holds(permit)).is_some()
    }

    /// Records the conclusion from the head of a response about a target that may be a file.
    /// Returns both instead, if the head does not give the length of the body.
    fn note_file(
        &self,
        file: FileKey,
        response: &Response,
        began: Span,
    ) -> Option<(FileKey, Shows)> {
        let (status, fields) = (response.status, &response.fields);
        let length = match response.framing {
            Framing::Length(length) => Some(length),
            Framing::None | Framing::Chunked | Framing::UntilClose => None,
        };
        let shows = static_files::shows(file, status, fields, length, began);
        if length.is_none() && file.is_whole_in(status) && shows != Shows::Other {
            return Some((file, shows));
        }
        self.worker.shared.note_file(file, shows);
        None
    }

    /// Returns the session that makes progress by a response with this head, which may be given a
    /// token.
    fn session_served(
        &self,
        status: StatusCode,
        judged: Judged,
        fields: &mut Fields,
    ) -> Option<SessionKey> {
        let record = &self.record;
        if let Some(watch) = &record.settings().session_cookie {
            let request = &record.facts().request;
            watch.answered(record.shared().secret, request, record.brought(), fields);
        }
        grant::session_served(&self.record, self.ticket.is_some(), status, judged, fields)
    }

    /// Gives the slot back. The request goes on without one.
    fn gives_slot_back(&mut self, served: Option<SessionKey>, status: StatusCode, judged: Judged) {
        self.record.earned(judged.earned);
        if let Some(ticket) = self.ticket.take() {
            self.record.decided(&ticket);
            // The time to the first byte of a stream is not a sample of how long requests take.
            ticket.answered(self.progress(served, status, judged), End::Failed);
        }
    }

    /// Returns the progress of the session, if there is one.
    fn progress(
        &self,
        served: Option<SessionKey>,
        status: StatusCode,
        judged: Judged,
    ) -> Option<Progress> {
        let (session, answer) = (served?, kind(status));
        let Judged { earned, succeeded } = judged;
        let in_time = self.record.is_in_time();
        Some(Progress { session, answer, earned, succeeded, in_time })
    }

    fn has_no_place(self, format: &RefusalFormat) -> Reply {
        self.fails(&UpstreamError::TooManyStreams, format)
    }

    fn fails(mut self, error: &UpstreamError, format: &RefusalFormat) -> Reply {
        self.record.ends(Outcome::UpstreamError, refuse::status_of(error));
        if let Some(ticket) = self.ticket.take() {
            self.record.decided(&ticket);
            ticket.failed(error.end());
        }
        refuse::upstream(format, error)
    }
}

impl Stream {
    pub(crate) fn poll_piece(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Piece, UpstreamError>> {
        if let Some(paced) = self.paced.as_mut().filter(|paced| paced.holds()) {
            let piece = ready!(paced.poll(cx));
            self.deadline.progressed();
            if let Some(piece) = piece {
                return Poll::Ready(Ok(Piece::Data(piece)));
            }
        }
        let piece = match self.ahead.as_mut().and_then(ReadAhead::take) {
            Some(piece) => piece,
            None => ready!(self.poll_arrival(cx)),
        };
        if self.running.is_none() && self.ahead.as_ref().is_some_and(ReadAhead::is_empty) {
            self.ahead = None;
        }
        Poll::Ready(piece)
    }

    /// Returns the next piece that arrives from the upstream.
    fn poll_arrival(&mut self, cx: &mut Context<'_>) -> Poll<Result<Piece, UpstreamError>> {
        let Some(exchange) = &mut self.exchange else {
            return Poll::Ready(Ok(Piece::End(None)));
        };
        let result = match exchange.poll_piece(cx) {
            Poll::Ready(result) => result,
            Poll::Pending if self.endless => return Poll::Pending,
            Poll::Pending => {
                self.deadline.excuses(exchange, &mut self.sent);
                let waits = exchange.waits_for_client();
                if self.poll_slow(cx, waits, || 0).is_ready() {
                    return Poll::Ready(Err(UpstreamError::Upload(BodyError::TooSlow)));
                }
                match self.deadline.poll(cx) {
                    Poll::Ready(error) => Err(error),
                    Poll::Pending => return Poll::Pending,
                }
            }
        };
        Poll::Ready(match result {
            Ok(Piece::Data(data)) => {
                self.deadline.progressed();
                self.taken += data.len() as u64;
                let _ = self.poll_slow(cx, false, || 0);
                if let Some(running) = &mut self.running {
                    running.record.received(data.len());
                    if self.taken > static_files::LARGEST
                        && let Some((file, _)) = self.file.take()
                    {
                        running.worker.shared.note_file(file, Shows::Other);
                    }
                }
                if let Some(sought) = &mut self.sought {
                    sought.take(&data);
                }
                match self.paced(data) {
                    Some(data) => Ok(Piece::Data(data)),
                    // The piece waits. The caller's task is woken when it is due.
                    None => return self.poll_piece(cx),
                }
            }
            Ok(Piece::End(trailers)) => {
                self.end();
                Ok(Piece::End(trailers.filter(|_| self.takes_trailers)))
            }
            Err(error) => {
                self.breaks_off(&error);
                Err(error)
            }
        })
    }

    /// Reads a file ahead of its client. Pending while the server has not sent more of it.
    fn poll_ahead(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        while self.running.is_some() && self.ahead.as_ref().is_some_and(ReadAhead::has_room) {
            let piece = ready!(self.poll_arrival(cx));
            if let Some(ahead) = &mut self.ahead {
                ahead.push(piece);
            }
        }
        Poll::Ready(())
    }

    /// Returns the pacing of the response, if a rule delays its bytes.
    pub(crate) const fn held_back(&mut self) -> Option<&mut Paced> {
        self.paced.as_mut()
    }

    /// Returns a piece that has arrived, unless a rule delays it.
    fn paced(&mut self, data: Bytes) -> Option<Bytes> {
        let (Some(paced), Some(running)) = (&mut self.paced, &self.running) else {
            return Some(data);
        };
        let lanes = &running.worker.shared.elephants.lanes;
        if paced.stays_in_lane(lanes.missing().is_none()) {
            return Some(data);
        }
        let due = paced.take(running.worker.shared.driver.now(), data);
        // The duration of the response is then not a sample of the upstream's speed.
        self.held_up |= due.is_none();
        due
    }

    /// Records that the client reads slowly, so a pause of the response is not the upstream's
    /// fault. Completes when the request was stopped because of it.
    pub(crate) fn poll_upload(
        &mut self,
        cx: &mut Context<'_>,
        unread: impl Fn() -> usize,
    ) -> Poll<()> {
        ready!(self.poll_ahead(cx));
        if let Some(exchange) = &mut self.exchange {
            exchange.poll_upload(cx);
            self.deadline.progressed();
            self.held_up = true;
        }
        self.poll_slow(cx, true, unread)
    }

    /// Returns whether the request was stopped because its client was slow while others waited.
    pub(crate) const fn was_stopped(&self) -> bool {
        self.client.was_stopped()
    }

    /// Tells the engine whether the request waits for its client. Completes when the request was
    /// stopped because of that, and has therefore ended.
    fn poll_slow(
        &mut self,
        cx: &mut Context<'_>,
        waits: bool,
        unread: impl Fn() -> usize,
    ) -> Poll<()> {
        let Some(running) = &self.running else {
            return if self.was_stopped() { Poll::Ready(()) } else { Poll::Pending };
        };
        let enforced = running.ticket.as_ref().filter(|_| running.record.is_enforced());
        let Some(ticket) = enforced else { return Poll::Pending };
        let sent = self.exchange.as_ref().map_or(0, Exchange::sent);
        let moved = || sent + self.taken.saturating_sub(unread() as u64);
        self.client.look_at_answer(cx, waits, moved, ticket);
        if !self.client.is_slow() {
            return Poll::Pending;
        }
        let refusal = ready!(ticket.poll_stopped(cx));
        self.stops(&refusal);
        Poll::Ready(())
    }

    /// Stops the request in the middle of its response. The part that was sent must not look
    /// complete.
    fn stops(&mut self, refusal: &Refusal) {
        self.client.stops();
        let exchange = self.exchange.take();
        // The ticket is dropped here. It has no slot to give back, and the server is not to blame.
        let Some(Streaming { mut record, .. }) = self.running.take() else { return };
        record.sent(exchange.as_ref().map_or(0, Exchange::sent));
        record.stopped(refusal, self.status);
    }

    /// Ends the request after a complete response.
    fn end(&mut self) {
        let Some(running) = self.running.take() else { return };
        if let Some(sought) = &self.sought {
            match sought.judge(&running.record.class_config().success) {
                Ok(judged) => self.judged = judged,
                Err(why) => running.record.success_unread(why),
            }
        }
        let got_on = self.served.filter(|_| gets_on(self.status));
        let progress = running.progress(got_on, self.status, self.judged);
        let Streaming { worker, mut record, ticket, pool, owner, load, .. } = running;
        if let Some((file, shows)) = self.file.take() {
            worker.shared.note_file(file, shows);
        }
        if let Some(ahead) = &mut self.ahead {
            ahead.server_is_done(&worker.shared);
        }
        if !self.endless {
            record.earned(self.judged.earned);
        }
        if let Some(ticket) = ticket {
            record.decided(&ticket);
            let end = End::Answered {
                in_time: record.is_in_time(),
                held_up: self.held_up,
                done: gets_on(self.status),
            };
            ticket.answered(progress, end);
        }
        let failed = self.status.is_server_error();
        let outcome = if failed { Outcome::UpstreamError } else { record.served_or_late() };
        record.ends(outcome, self.status);
        let exchange = self.exchange.take();
        record.sent(exchange.as_ref().map_or(0, Exchange::sent));
        let link = exchange.and_then(Exchange::finish);
        if let Some(load) = load {
            let (server, now) = (load.server(), worker.shared.driver.now());
            if failed {
                load.errs(now);
            } else {
                load.succeeded(now);
            }
            if let Some(link) = link {
                gives_back(&pool, owner.as_ref(), server, link);
            }
        }
    }

    /// Ends the request after its response broke off. The client's connection or stream is closed
    /// on the error, so that the client does not take the truncated response for a complete one.
    fn breaks_off(&mut self, error: &UpstreamError) {
        let exchange = self.exchange.take();
        if let (Some(exchange), UpstreamError::IdleTimeout(_)) = (&exchange, error) {
            exchange.retire();
        }
        let Some(running) = self.running.take() else { return };
        let Streaming { worker, mut record, ticket, load, .. } = running;
        record.sent(exchange.as_ref().map_or(0, Exchange::sent));
        let clients = matches!(error, UpstreamError::Upload(_));
        let outcome = if clients { Outcome::Orphaned } else { Outcome::UpstreamError };
        record.ends(outcome, self.status);
        if error.is_given_up() {
            record.is_out_of_time();
        }
        // The total time includes the client's, and so does a pause in which its body was missing.
        let waits = exchange.as_ref().is_some_and(Exchange::waits_for_client);
        if let Some(ticket) = ticket {
            record.decided(&ticket);
            ticket.failed(if waits { End::Failed } else { error.end() });
        }
        let blameless = clients || waits || matches!(error, UpstreamError::TotalTimeout);
        if let Some(load) = load.filter(|_| !blameless) {
            load.failed(worker.shared.driver.now(), Failure::Response);
        }
    }
}
