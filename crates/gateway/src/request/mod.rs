//! The life of a request: examine → wait for a slot → forward → stream back.
//!
//! [`serve`] is one future inside the future of its client's connection. It does not watch for the
//! client's disconnect itself: a disconnect drops the connection's future, and [`serve`] with it.

mod answer;
mod answer_kind;
mod client_deadline;
mod client_rate;
mod deadline;
mod departed;
mod examine;
mod forward;
mod forwarded;
#[cfg(any(test, feature = "fuzz"))]
pub(crate) mod fuzz;
mod grant;
mod peer;
mod read_ahead;
pub(crate) mod record;
mod refuse;
pub(crate) mod reply;
mod signals;
mod success;
mod wait;

use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Context;

use bywash_config::Departures;
use bywash_engine::{Reason, Refusal, Standing};
use bywash_message::{Fields, Framing, Name, ParseError, Request};
use http::StatusCode;

pub(crate) use answer::{Stream, Streaming};
use client_deadline::ClientDeadline;
use client_rate::ClientRate;
use departed::{Admission, Unanswered};
pub(crate) use examine::Facts;
use forward::{AtServer, Forward};
pub(crate) use peer::Peer;
use refuse::RefusalFormat;
use wait::{Ended, NoBody, Waited};

use crate::context::Worker;
use crate::identity::levels::Levels;
use crate::identity::populations;
use crate::io::body::{Body, BodyError};
use crate::io::upload::Upload;
use crate::process::local_fault::LocalFault;
use crate::process::memory;
use crate::request::record::Record;
use crate::request::reply::Reply;
use crate::shared::{CountedPermit, Shared};
use crate::static_files::{self, Shows};
use crate::upstream::{PinnedLink, UpstreamError};

/// The connection of a request's client, as the phases of the request use it.
pub(crate) trait ClientConnection {
    /// Returns the [`PinnedLink`] of this client connection, for the upstream connection that is
    /// pinned to it. Returns `None` for HTTP/2, because one authentication must not apply to all
    /// streams of a connection.
    fn pin(&self) -> Option<&PinnedLink>;

    /// Passes an interim response (1xx) on to the client.
    fn interim(&self, cx: &mut Context<'_>, status: StatusCode, fields: &Fields);
}

/// Processes one request from its head to the head of its response. The body of the returned reply
/// owns the rest: it delivers the response and ends the request.
pub(crate) async fn serve(
    worker: Rc<Worker>,
    peer: Rc<Peer>,
    request: Request,
    body: Body,
    back: Rc<dyn ClientConnection>,
) -> Reply {
    let settings = worker.settings();
    let facts = examine::examine(&worker.shared, &settings, &request, &peer);
    if let Some(worth) = facts.token.worth {
        worker.shared.metrics.token_brought(worth);
    }
    if let Some(signature) = facts.signature {
        worker.shared.metrics.signature_verified(signature.result());
    }
    worker.shared.metrics.count_customer_level(facts.customer_level);
    if let Some(doubt) = facts.doubt {
        worker.shared.metrics.forwarding_doubted(doubt);
    }
    let mut record = Record::new(&worker, &settings, &facts, &request);
    record.set_file(static_files::asked(
        worker.shared.secret,
        &settings.config,
        &request,
        &facts.request,
    ));
    if let Some(watch) = &settings.session_cookie {
        record.set_watched_cookies(watch.watched_cookies(worker.shared.secret, &request.fields));
    }
    let format = RefusalFormat::new(&settings, &peer, &request.fields, record.name());
    if forward::is_looping(&request.fields) {
        return refuse::looping(&format, &mut record);
    }
    let most = settings.max_body_bytes(&facts.request);
    if matches!(request.framing, Framing::Length(length) if length > most) {
        return refuse::upload(&mut record, BodyError::TooLarge);
    }
    if let Err(refusal) = memory_for(&worker, request.framing) {
        return refuse::busy(&format, &mut record, &refusal);
    }
    let asks = request.expects_continue;
    let upload = Upload::new(
        body,
        request.framing,
        asks,
        most,
        (&worker.shared.memory, &settings.config.queue),
        settings.levels.as_ref().and_then(Levels::customer_header),
    );
    let (mut deadline, client) = (ClientDeadline::NEVER, ClientRate::default());
    let mut forward = Box::new(Forward { request, upload, peer, back, client });
    let admitted = admit(&worker, &mut record, &mut forward, &mut deadline, &format).await;
    let admission = match admitted {
        Ok(admission) => admission,
        Err(reply) => return *reply,
    };
    run(&worker, record, admission, deadline, forward, &format).await
}

/// Checks that the memory budget has room for the body. Returns the refusal if it has none.
fn memory_for(worker: &Worker, framing: Framing) -> Result<(), Refusal> {
    let length = match framing {
        Framing::None => Some(0),
        Framing::Length(length) => Some(length),
        Framing::Chunked | Framing::UntilClose => None,
    };
    if !worker.shared.memory.refuses_body(length) {
        return Ok(());
    }
    Err(memory_full(worker))
}

/// Returns the refusal of a request for whose body the memory budget has no space.
fn memory_full(worker: &Worker) -> Refusal {
    let at = worker.shared.driver.now();
    Refusal { reason: Reason::MemoryFull, retry_after: memory::RETRY_AFTER, at }
}

/// Counts and logs a malformed message, and returns the response to it. Nothing of the message was
/// forwarded. The response closes the connection, because it is unknown where the next message
/// begins.
pub(crate) fn malformed(worker: &Worker, peer: &Peer, error: ParseError) -> Reply {
    let status = refuse::status_of_parse_error(error);
    worker.shared.metrics.malformed(error);
    worker.shared.metrics.message_refused(status);
    worker.shared.request_log.refused_message(peer.address, error.name(), status);
    refuse::malformed(error)
}

/// Counts and logs a head that has not arrived in time, and returns the response (408).
pub(crate) fn too_slow(worker: &Worker, peer: &Peer) -> Reply {
    worker.shared.metrics.too_slow();
    worker.shared.metrics.message_refused(StatusCode::REQUEST_TIMEOUT);
    worker.shared.request_log.refused_message(
        peer.address,
        "slow_head",
        StatusCode::REQUEST_TIMEOUT,
    );
    refuse::too_slow()
}

/// Asks the engine about a request. Where decisions are enforced, waits for the body and for the
/// engine's decision. Sets `deadline` to the client's own deadline, but not for a request that is
/// only observed.
///
/// # Errors
/// Returns the reply if the request is refused or its client fails to send the body in time.
async fn admit(
    worker: &Worker,
    record: &mut Record,
    forward: &mut Forward,
    deadline: &mut ClientDeadline,
    format: &RefusalFormat,
) -> Result<Admission, Box<Reply>> {
    let shared = &worker.shared;
    let Forward { request, upload, peer, client, .. } = forward;
    if let Some(admission) = admission_without_slot(shared, record, format)? {
        return Ok(admission);
    }
    let began = record.arrived();
    if record.is_enforced() {
        *deadline = ClientDeadline::at(record.client_waits_until(), began);
        let _counted = (!upload.has_ended()).then(|| CountedPermit::upload(shared));
        match wait::for_body(&shared.driver, upload, deadline, is_grpc(&request.fields)).await {
            Ok(()) if upload.is_too_much() => {
                return Err(Box::new(refuse::busy(format, record, &memory_full(worker))));
            }
            Ok(()) => {}
            Err(NoBody::OutOfTime) => return Err(Box::new(refuse::out_of_time(format, record))),
            Err(NoBody::Broken(error)) => return Err(Box::new(refuse::upload(record, error))),
        }
    }
    // An observed request does not wait for its body, so its body counts as complete.
    let unfinished = record.is_enforced() && !upload.has_ended();
    let mut asked = record.facts().request;
    if unfinished {
        asked.upload = bywash_engine::Upload::Unfinished;
    }
    let mut own = asked.population;
    let ticket = shared.driver.arrive(asked, record.is_enforced(), |asked| {
        own = Some(populations::population(shared.secret, request));
        asked.population = own;
        asked.target = Some(populations::target(shared.secret, request));
    });
    record.submitted(&ticket);
    peer.proven.set(ticket.standing() != Standing::New);
    if let Some((population, _)) = ticket.population().filter(|of| own == Some(of.0)) {
        shared.appearances.note(population, request);
    }
    if record.is_enforced() {
        match wait::for_slot(&ticket, upload, deadline).await {
            Waited::Granted(reason, at) => record.granted(reason, at),
            Waited::Refused(refusal) => {
                return Err(Box::new(refuse::busy(format, record, &refusal)));
            }
            Waited::Broken(error) => return Err(Box::new(refuse::upload(record, error))),
        }
    }
    if unfinished {
        client.begin_unfinished_body();
    }
    if record.is_enforced() && upload.is_awaited() {
        client.begin_slow(upload.rate(shared.driver.now().since(began)), &ticket);
    }
    Ok(Admission::Slot(ticket))
}

/// Returns the admission of a request that runs at once, because the gateway is bypassed or because
/// the request is for a file. Returns `None` if the engine decides.
///
/// # Errors
/// Returns the reply if as many requests run without a slot as `client_limits.observed` allows.
fn admission_without_slot(
    shared: &Arc<Shared>,
    record: &mut Record,
    format: &RefusalFormat,
) -> Result<Option<Admission>, Box<Reply>> {
    let is_bypassed = shared.is_bypassed();
    if is_bypassed || !record.is_enforced() {
        let most = record.settings().config.client_limits.observed;
        let Some(permit) = CountedPermit::observed(shared, most) else {
            return Err(Box::new(refuse_too_many_without_slot(record, format)));
        };
        record.hold_permit(permit);
    }
    if is_bypassed {
        return Ok(Some(Admission::None));
    }
    let admission = admission_of_file(shared, record);
    if admission.is_some() {
        shared.metrics.file_skipped();
    }
    Ok(admission)
}

/// Returns the admission of a request for a known file, which runs without a slot. An observed
/// request has a permit already. Returns `None` if the target is not a known file, if there are no
/// permits left, or if the memory budget is nearly used up.
fn admission_of_file(shared: &Arc<Shared>, record: &Record) -> Option<Admission> {
    let file = record.file().filter(|file| shared.files.has(*file))?;
    if !record.is_enforced() {
        return Some(Admission::None);
    }
    // The answer with a file may have to be kept in memory for a client that reads slowly.
    if shared.memory.level() > memory::Level::Calm {
        return None;
    }
    let most = shared.driver.status().limit as usize;
    let observed = record.settings().config.client_limits.observed;
    CountedPermit::file(shared, most, observed).map(|permit| Admission::File(file, permit))
}

/// Returns whether the request is a gRPC call, in which both sides may send at once. The first
/// piece of its body may then be the client's reaction to the application.
fn is_grpc(fields: &Fields) -> bool {
    const KIND: &[u8] = b"application/grpc";
    let kind = fields.get(Name::ContentType).unwrap_or_default();
    kind.get(..KIND.len()).is_some_and(|kind| kind.eq_ignore_ascii_case(KIND))
}

/// Refuses a request because too many requests run without a slot.
fn refuse_too_many_without_slot(record: &mut Record, format: &RefusalFormat) -> Reply {
    record.shared().local_fault(LocalFault::Requests);
    refuse::upstream(format, record, None, &UpstreamError::Local(LocalFault::Requests))
}

/// Returns which disconnects the application notices. For a request that holds no slot, the result
/// is [`Departures::Noticed`].
fn departures(record: &Record) -> Departures {
    if record.is_enforced() {
        record.settings().config.upstream.departures
    } else {
        // The request holds no slot, so nothing must be held after a disconnect.
        Departures::Noticed
    }
}

/// Forwards an admitted request and returns its response, or the gateway's own if it fails.
async fn run(
    worker: &Rc<Worker>,
    mut record: Box<Record>,
    admission: Admission,
    mut deadline: ClientDeadline,
    forward: Box<Forward>,
    format: &RefusalFormat,
) -> Reply {
    record.ensure_started();
    // A request may be stopped because of its client only while its body has not arrived.
    let may_be_slow = !forward.upload.has_ended();
    let departures = departures(&record);
    let may_be_stopped = record.facts().request.cancellable || may_be_slow;
    let mut unanswered = Unanswered::new(Rc::clone(worker), admission, departures, &record);
    let ended = {
        let Unanswered { admission, at_server, .. } = &mut unanswered;
        let ticket = admission.ticket();
        let slow = ticket.filter(|_| record.is_enforced());
        let if_stopped = ticket.filter(|_| may_be_stopped);
        let forwarding = pin!(forward::forward(worker, &mut record, slow, forward, at_server));
        wait::until_ended(if_stopped, &mut deadline, forwarding).await
    };
    let forwarded = match ended {
        Ok(forwarded) => forwarded,
        // The client's own deadline counts as its departure. Neither the gateway nor the server is
        // to blame.
        Err(Ended::OutOfTime) => return refuse::out_of_time(format, &mut record),
        Err(Ended::Stopped(refusal)) => {
            let ran_too_long = refusal.reason == Reason::RanTooLong;
            if let Some(AtServer { load, .. }) =
                unanswered.at_server.take().filter(|_| ran_too_long)
            {
                load.ran_too_long(worker.shared.driver.now());
            }
            // Dropping the ticket gives no slot back, because the engine has already taken the
            // slot.
            return refuse::stopped(format, &mut record, &refusal);
        }
    };
    let ticket = match unanswered.take_admission() {
        Admission::None => None,
        Admission::Slot(ticket) => Some(ticket),
        Admission::File(file, permit) => {
            if forwarded.is_err() {
                worker.shared.note_file(file, Shows::Other);
            }
            record.hold_permit(permit);
            None
        }
    };
    match forwarded {
        Ok(forwarded) => {
            let pool = Rc::clone(&forwarded.pool);
            let running = Streaming::new(Rc::clone(worker), record, ticket, pool);
            answer::answer(running, forwarded, format)
        }
        Err(error) => refuse::upstream(format, &mut record, ticket, &error),
    }
}

#[cfg(test)]
mod tests {
    use bywash_message::Fields;

    /// Builds the fields of a head from pairs of name and value, for the tests of the modules.
    pub(super) fn fields(lines: &[(&str, &str)]) -> Fields {
        let mut fields = Fields::new();
        for (name, value) in lines {
            fields.push(name.as_bytes(), value.as_bytes());
        }
        fields
    }
}
