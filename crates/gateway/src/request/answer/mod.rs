//! The fourth phase of a request: the response is streamed to the client, and the request ends.
//!
//! The body of the response owns the slot, the upstream connection and the record. It releases all
//! of them when it is dropped: after the last byte is written, or when the client has left.
//!
//! **Streams are counted separately.** A stream is a connection that has switched protocols
//! (WebSocket), or a response of server-sent events. It lasts as long as a user looks at the page,
//! and costs the application almost nothing. So it gives its slot back when it begins, and counts
//! against `client_limits.streams` instead.

mod stream;

use std::rc::Rc;

use bywash_engine::{Outcome, SessionKey};
use bywash_message::{Fields, Framing, Name, Response};
use bywash_units::TimeSpan;
use http::StatusCode;

use super::ClientConnection;
use super::answer_kind::{kind, may_advance_session};
use super::forward::Forwarded;
use super::grant;
use super::read_ahead::ReadAhead;
use super::refuse::{self, RefusalFormat};
use super::success::{self, Judged};
use crate::context::Worker;
use crate::driver::{Progress, Ticket};
use crate::request::record::Record;
use crate::request::reply::{Answer, Reply, Tunnel};
use crate::shared::CountedPermit;
use crate::static_files::{self, FileKey, Shows};
use crate::upstream::servers::Load;
use crate::upstream::{Exchange, Link, Pool, UpstreamError};

pub(crate) use stream::Stream;

/// A request whose response has begun, with everything that must be released at its end.
pub(crate) struct Streaming {
    worker: Rc<Worker>,
    pub(crate) record: Box<Record>,
    /// The ticket of the engine. `None` if the gateway is bypassed, or if the slot was given back
    /// already.
    ticket: Option<Ticket>,
    pool: Rc<Pool>,
    /// The client connection that may keep an upstream connection which a server has authenticated.
    /// With `None`, such an upstream connection is closed.
    owner: Option<Rc<dyn ClientConnection>>,
    load: Option<Load>,
}

/// Returns the response for the client. If the response has no body, the request ends here.
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
    // A body that ends with the connection is sent in chunks, so that the client can detect a
    // truncated body.
    let framing = if framing == Framing::UntilClose { Framing::Chunked } else { framing };
    let endless = is_event_stream(&fields);
    if endless && !running.count_as_stream() {
        return running.refuse_too_many_streams(format);
    }
    fields.remove_hop_by_hop();
    if !takes_trailers {
        fields.remove(Name::Trailer);
    }
    running.record.mark_answered_upstream();
    // The client already has the page that has not been modified.
    let is_redirected = status.is_redirection() && status != StatusCode::NOT_MODIFIED;
    if let Some(ticket) = running.ticket.as_ref().filter(|_| is_redirected) {
        ticket.redirected();
    }
    let (judged, sought) = success::judge(&running.record, status, &mut fields);
    let served = running.session_served(status, judged, &mut fields);
    if endless {
        running.release_slot(served.filter(|_| may_advance_session(status)), status, judged);
    }
    let permit = running.record.take_file_permit();
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

/// Switches the connection to another protocol after the upstream has agreed (101). Fails the
/// request if the response names no protocol, or if there are too many streams.
fn switch(
    mut running: Streaming,
    exchange: Exchange,
    response: Response,
    format: &RefusalFormat,
) -> Reply {
    let Response { status, reason, mut fields, .. } = response;
    let protocol = fields.get(Name::Upgrade).map(<[u8]>::to_vec);
    let (Some(protocol), Some(wire)) = (protocol, exchange.into_wire()) else {
        return running.fail(&UpstreamError::Switched, format);
    };
    if !running.count_as_stream() {
        return running.refuse_too_many_streams(format);
    }
    running.record.mark_answered_upstream();
    fields.remove_hop_by_hop();
    fields.push(b"Upgrade", &protocol);
    let (judged, _) = success::judge(&running.record, status, &mut fields);
    let served = running.session_served(status, judged, &mut fields);
    running.release_slot(served, status, judged);
    running.record.end(Outcome::Served, status);
    let body = Answer::Tunnel(Box::new(Tunnel { wire, request: running }));
    Reply { status, reason, fields, framing: Framing::None, close: false, body }
}

fn is_event_stream(fields: &Fields) -> bool {
    const KIND: &[u8] = b"text/event-stream";
    let kind = fields.get(Name::ContentType).unwrap_or_default();
    kind.get(..KIND.len()).is_some_and(|kind| kind.eq_ignore_ascii_case(KIND))
}

/// Puts a reusable upstream connection back into its pool. An authenticated one goes to `owner`,
/// the client connection that it belongs to.
fn return_to_pool(
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

impl Streaming {
    pub(super) fn new(
        worker: Rc<Worker>,
        record: Box<Record>,
        ticket: Option<Ticket>,
        pool: Rc<Pool>,
    ) -> Self {
        Self { worker, record, ticket, pool, owner: None, load: None }
    }

    /// Counts the request as a stream instead of against the concurrency limit. Returns false if
    /// there are as many streams as `client_limits.streams` allows.
    fn count_as_stream(&mut self) -> bool {
        let most = self.record.settings().config.client_limits.streams;
        let permit = CountedPermit::stream(&self.worker.shared, most);
        permit.map(|permit| self.record.hold_permit(permit)).is_some()
    }

    /// Records what the head of the response shows about a target that may be a file. If the head
    /// does not give the length of the body, records nothing and returns the file with the
    /// conclusion, which the end of the body then confirms or revokes.
    fn note_file(
        &self,
        file: FileKey,
        response: &Response,
        began: TimeSpan,
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

    /// Returns the session that makes progress by a response with this head. May add a session
    /// token to `fields`.
    fn session_served(
        &self,
        status: StatusCode,
        judged: Judged,
        fields: &mut Fields,
    ) -> Option<SessionKey> {
        let record = &self.record;
        if let Some(watch) = &record.settings().session_cookie {
            let request = &record.facts().request;
            watch.observe_answer(record.shared().secret, request, record.watched_cookies(), fields);
        }
        grant::session_served(&self.record, self.ticket.is_some(), status, judged, fields)
    }

    /// Gives the slot back and records the revenue. The request goes on without a slot.
    fn release_slot(&mut self, served: Option<SessionKey>, status: StatusCode, judged: Judged) {
        self.record.set_revenue(judged.revenue);
        if let Some(ticket) = self.ticket.take() {
            let progress = self.progress(served, status, judged);
            self.record.release_slot(ticket, progress);
        }
    }

    /// Returns the progress of the session `served` for the engine. Returns `None` if there is no
    /// such session.
    fn progress(
        &self,
        served: Option<SessionKey>,
        status: StatusCode,
        judged: Judged,
    ) -> Option<Progress> {
        let (session, answer) = (served?, kind(status));
        let Judged { revenue, succeeded } = judged;
        let in_time = self.record.is_in_time();
        Some(Progress { session, answer, revenue, succeeded, in_time })
    }

    fn refuse_too_many_streams(self, format: &RefusalFormat) -> Reply {
        self.fail(&UpstreamError::TooManyStreams, format)
    }

    fn fail(mut self, error: &UpstreamError, format: &RefusalFormat) -> Reply {
        refuse::upstream(format, &mut self.record, self.ticket, error)
    }
}
