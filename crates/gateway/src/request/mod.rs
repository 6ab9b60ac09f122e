//! The life of a request: examine → wait for a slot → forward → stream back.
//!
//! [`serve`] is one future inside the future of its client's connection. Nothing in it watches
//! for the client's departure: that drops the connection's future, and this one with it.

mod answer;
mod examine;
mod fields;
mod forward;
mod refuse;
mod upload;
mod wait;

use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;

use bywash_config::Mode;
use bywash_engine::Outcome;
use http::{HeaderValue, Request, Response, StatusCode};
use hyper::body::Incoming;

pub(crate) use answer::Answer;
use answer::Streaming;
pub(crate) use examine::{Facts, Fault};
use forward::Forward;
pub(crate) use refuse::full;
pub(crate) use upload::Upload;
use wait::Waited;

use crate::client::{Client, Phase};
use crate::driver::Ticket;
use crate::record::Record;
use crate::upstream::UpstreamError;
use crate::worker::Worker;

/// The other end of a client's connection.
pub(crate) struct Peer {
    address: IpAddr,
    /// As it stands in `X-Forwarded-For`; written once for all requests of the connection.
    text: HeaderValue,
}

impl Peer {
    pub(crate) fn new(peer: SocketAddr) -> Self {
        // A listener for both families sees IPv4 clients under IPv6 names.
        let address = peer.ip().to_canonical();
        let text = HeaderValue::from_str(&address.to_string());
        Self { address, text: text.expect("an address is written in visible characters") }
    }
}

/// Marks a connection as busy for as long as a request is in the gateway's hands.
pub(crate) struct Busy(Rc<Client>);

impl Busy {
    fn new(client: Rc<Client>) -> Self {
        client.enter(Phase::Busy);
        Self(client)
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.enter(Phase::Idle);
    }
}

/// One request, from its head to the beginning of its answer; the rest of its life is in the
/// answer's body.
pub(crate) async fn serve(
    worker: Rc<Worker>,
    client: Rc<Client>,
    peer: Rc<Peer>,
    request: Request<Incoming>,
) -> Result<Response<Answer>, Infallible> {
    let busy = Busy::new(client);
    let facts = match examine::examine(&worker.shared, &request, peer.address) {
        Ok(facts) => facts,
        Err(fault) => {
            worker.shared.metrics.malformed(fault);
            return Ok(refuse::malformed(fault));
        }
    };
    let (parts, body) = request.into_parts();
    let record = Record::new(&worker.shared, &facts, &parts);
    let upload = Upload::new(body, facts.fields.expect, &worker.shared);
    match admit(&worker, &facts, record, upload).await {
        Admission::Runs(running) => {
            let Running { record, upload, ticket } = running;
            let name = record.name();
            let forward = Forward { parts, upload, fields: facts.fields, peer: &peer.text, name };
            run(worker, busy, record, ticket, forward).await
        }
        Admission::Refused(answer) => Ok(answer),
    }
}

/// A request that may run now.
struct Running {
    record: Record,
    upload: Upload,
    /// `None`: the gateway is bypassed.
    ticket: Option<Ticket>,
}

enum Admission {
    Runs(Running),
    Refused(Response<Answer>),
}

/// Asks the engine and, where its decisions are carried out, waits for what it says.
async fn admit(
    worker: &Worker,
    facts: &Facts,
    mut record: Record,
    mut upload: Upload,
) -> Admission {
    let shared = &worker.shared;
    if shared.is_bypassed() {
        return Admission::Runs(Running { record, upload, ticket: None });
    }
    let ticket = shared.driver.arrive(facts.request);
    let mode = shared.config.classes[facts.request.class.index()].mode;
    if mode == Mode::Enforce {
        match wait::for_slot(&ticket, &mut upload).await {
            Waited::Granted(reason, at) => record.granted(reason, at),
            Waited::Refused(refusal) => {
                record.refused(&refusal);
                return Admission::Refused(refuse::busy(&refusal, upload.is_read()));
            }
            Waited::Broken => {
                shared.metrics.malformed(Fault::Body);
                record.ends(Outcome::Orphaned, StatusCode::BAD_REQUEST);
                return Admission::Refused(refuse::malformed(Fault::Body));
            }
        }
    }
    Admission::Runs(Running { record, upload, ticket: Some(ticket) })
}

/// Forwards an admitted request and hands its answer on.
async fn run(
    worker: Rc<Worker>,
    busy: Busy,
    mut record: Record,
    ticket: Option<Ticket>,
    forward: Forward<'_>,
) -> Result<Response<Answer>, Infallible> {
    record.runs();
    match forward::forward(&worker, forward).await {
        Ok((link, response)) => {
            Ok(Streaming { worker, busy, record, ticket, link }.answer(response))
        }
        Err(error) => {
            let clients = matches!(error, UpstreamError::Upload(_));
            let outcome = if clients { Outcome::Orphaned } else { Outcome::UpstreamError };
            record.ends(outcome, refuse::status_of(&error));
            if let Some(ticket) = ticket {
                record.decided(&ticket);
                ticket.failed();
            }
            Ok(refuse::upstream(&error))
        }
    }
}
