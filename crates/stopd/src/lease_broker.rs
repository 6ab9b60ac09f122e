//! Handles the messages of all clients and holds the leases.
//!
//! One [`LeaseBroker`] serves all client connections, on one thread, so each message is handled
//! completely before the next one. The work in a database follows later in a canceller, which
//! checks the leases here again before it cancels anything.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use bywash_config::Mode;
use bywash_lease::{
    Answer, Backend, Command, DatabaseName, Holder, Leased, Message, OWN, Part, Reason, Refusal,
    Released, RequestId, Scope, Stopped, Table,
};
use bywash_units::{Time, TimeSpan};

use crate::job::{Job, Report, Stop};
use crate::numbers::Numbers;
use crate::peer::Peer;
use crate::responder::Responder;
use crate::spared::Spared;

/// The maximum duration of a lease. A lease without `not-after` has this duration. Every lease also
/// ends with its client connection.
const LEASE: TimeSpan = TimeSpan::from_secs(3600);
/// The maximum time for which a stop is remembered, and the time for a stop without `not-after`.
const STOP: TimeSpan = TimeSpan::from_secs(60);

/// The channel to the canceller of one database.
pub(crate) struct JobChannel {
    pub(crate) jobs: tokio::sync::mpsc::Sender<Job>,
    /// Whether the canceller also searches for tagged statements without a lease.
    pub(crate) query_tags: bool,
}

pub(crate) struct LeaseBroker {
    pub(crate) numbers: Numbers,
    pub(crate) mode: Mode,
    table: RefCell<Table>,
    responders: RefCell<HashMap<Holder, Responder>>,
    channels: BTreeMap<DatabaseName, JobChannel>,
    started: Instant,
}

impl LeaseBroker {
    pub(crate) fn new(
        mode: Mode,
        channels: BTreeMap<DatabaseName, JobChannel>,
        table: Table,
        numbers: Numbers,
    ) -> Self {
        Self {
            numbers,
            mode,
            table: RefCell::new(table),
            responders: RefCell::default(),
            channels,
            started: Instant::now(),
        }
    }

    pub(crate) fn now(&self) -> Time {
        Time::ZERO + TimeSpan::from_nanos(self.started.elapsed().as_nanos() as u64)
    }

    pub(crate) fn connected(&self, holder: Holder, responder: Responder) {
        self.responders.borrow_mut().insert(holder, responder);
    }

    pub(crate) fn disconnected(&self, holder: Holder) {
        self.responders.borrow_mut().remove(&holder);
        self.table.borrow_mut().gone(holder);
        self.count();
    }

    /// Handles a message. The response is sent to `responder`, immediately or later.
    pub(crate) fn handle(&self, peer: &Peer, responder: &Responder, message: Message) {
        let (number, holder) = (message.number, peer.holder);
        if let Err((refusal, why)) = peer.check(&message.command) {
            return self.refuse(responder, number, refusal, why);
        }
        let answered = match message.command {
            Command::Lease { request, database, connection, not_after } => {
                self.lease(holder, &request, &Backend::new(database, connection, holder), not_after)
            }
            Command::Release { request, database, connection } => {
                self.release(holder, &request, &Backend::new(database, connection, holder), number)
            }
            Command::Stop { request, reason, scope, not_after, traceparent } => {
                let only = (scope == Scope::Own).then(|| Part { holder, until: self.now() });
                self.stop(
                    responder,
                    number,
                    &Stop { request, reason, only, not_after, traceparent },
                )
            }
        };
        match answered {
            Ok(None) => {}
            Ok(Some(answer)) => responder.send(number, &answer),
            Err((refusal, why)) => self.refuse(responder, number, refusal, why),
        }
        self.count();
    }

    pub(crate) fn refuse(&self, responder: &Responder, number: u64, refusal: Refusal, why: &str) {
        self.numbers.refuse(refusal);
        responder.refuse(number, refusal, why);
    }

    fn lease(
        &self,
        holder: Holder,
        request: &RequestId,
        backend: &Backend,
        not_after: Option<u64>,
    ) -> Answered {
        if backend.database.as_str() != OWN && !self.channels.contains_key(&backend.database) {
            return Err(refused(
                Refusal::UnknownDatabase,
                "there is no [database.NAME] of this name",
            ));
        }
        let now = self.now();
        let left = left(not_after, LEASE);
        let left = left.ok_or(refused(Refusal::Late, "its not-after has passed"))?;
        match self.table.borrow_mut().lease(now, holder, request, backend, now + left) {
            Leased::Held => Ok(Some(Answer::Done)),
            Leased::Stopped(reason) => Ok(Some(Answer::Stopped(reason))),
            Leased::Taken => {
                Err(refused(Refusal::Taken, "this connection has another lease: close it"))
            }
            Leased::Full => Err(refused(Refusal::Full, "there are too many leases")),
        }
    }

    fn release(
        &self,
        holder: Holder,
        request: &RequestId,
        backend: &Backend,
        number: u64,
    ) -> Answered {
        match self.table.borrow_mut().release(holder, request, backend, number) {
            Released::Now => Ok(Some(Answer::Done)),
            Released::Later => Ok(None),
            Released::Doubtful => Err(IN_DOUBT),
            Released::NotLeased => Err(refused(Refusal::NotLeased, "you have no such lease")),
        }
    }

    fn stop(&self, responder: &Responder, number: u64, stop: &Stop) -> Answered {
        let Stop { request, reason, only, .. } = stop;
        let left = left(stop.not_after, STOP);
        let left = left.ok_or(refused(Refusal::Late, "its not-after has passed"))?;
        let report = Rc::new(Report::new(responder, number));
        let is_observed = self.mode == Mode::Observe;
        let stopped = if only.is_some() && self.table.borrow_mut().is_stopped(self.now(), request) {
            Stopped::Again
        } else if is_observed || only.is_some() {
            // A stop in observe mode or with `scope=own` is not remembered, so no lease is refused
            // because of it.
            Stopped::First(self.table.borrow().works_for(self.now(), request, *only))
        } else {
            self.table.borrow_mut().stop(self.now(), request, *reason)
        };
        let Stopped::First(works) = stopped else { return Ok(None) };
        if only.is_none() || !works.is_empty() {
            self.numbers.stop(*reason);
        }
        for (backend, holder) in &works {
            if backend.database.as_str() == OWN {
                if !is_observed {
                    self.notify_holder(*holder, request, *reason, backend.connection);
                }
                report.cancelled();
            }
        }
        for (name, channel) in &self.channels {
            // Tagged statements may belong to other services too, so `scope=own` does not cover
            // them.
            let is_tagged = channel.query_tags && only.is_none();
            if is_tagged || works.iter().any(|(backend, _)| backend.database == *name) {
                let job = Job::new(stop, self.now(), left, &report);
                if channel.jobs.try_send(job).is_err() {
                    self.numbers.spare(name.as_str(), Spared::Late);
                    report.spared();
                }
            }
        }
        Ok(None)
    }

    /// Notifies the holder of a lease on itself (`self`) that its request was stopped, in a line
    /// with the number 0.
    fn notify_holder(&self, holder: Holder, request: &RequestId, reason: Reason, connection: u64) {
        if let Some(responder) = self.responders.borrow().get(&holder) {
            responder.send(0, &Answer::StopWork { request: request.clone(), reason, connection });
        }
    }

    /// Returns the connections to this database that now work for a request.
    pub(crate) fn works_for(
        &self,
        request: &RequestId,
        only: Option<Part>,
        database: &DatabaseName,
    ) -> Vec<u64> {
        let works = self.table.borrow().works_for(self.now(), request, only);
        let here = works.into_iter().filter(|(backend, _)| backend.database == *database);
        here.map(|(backend, _)| backend.connection).collect()
    }

    /// Calls [`Table::begin`]. Returns whether the connection now works for this request, so that
    /// it may be cancelled.
    pub(crate) fn begin(&self, request: &RequestId, only: Option<Part>, backend: &Backend) -> bool {
        self.table.borrow_mut().begin(self.now(), request, only, backend)
    }

    /// Calls [`Table::end`], and answers the release that waits for this connection.
    pub(crate) fn end(&self, backend: &Backend) {
        let waits = self.table.borrow_mut().end(backend);
        if let Some((holder, number)) = waits
            && let Some(responder) = self.responders.borrow().get(&holder)
        {
            responder.send(number, &Answer::Done);
        }
        self.count();
    }

    /// Calls [`Table::doubt`], and refuses the release that waits for this connection.
    pub(crate) fn doubt(&self, backend: &Backend) {
        let waits = self.table.borrow_mut().doubt(backend);
        self.refuse_release(waits);
    }

    /// Calls [`Table::lose`], and refuses the release that waits for this connection.
    pub(crate) fn lose(&self, backend: &Backend) {
        let waits = self.table.borrow_mut().lose(self.now(), backend);
        self.refuse_release(waits);
    }

    fn refuse_release(&self, waits: Option<(Holder, u64)>) {
        if let Some((holder, number)) = waits
            && let Some(responder) = self.responders.borrow().get(&holder)
        {
            let (refusal, why) = IN_DOUBT;
            self.refuse(responder, number, refusal, why);
        }
    }

    /// Returns whether the connection is leased to the request `request` at present.
    pub(crate) fn is_of(&self, request: &RequestId, backend: &Backend) -> bool {
        self.table.borrow().request_of(backend) == Some(request)
    }

    /// Returns whether the connection is leased to a request other than `request` at present.
    pub(crate) fn is_of_another(&self, request: &RequestId, backend: &Backend) -> bool {
        self.table.borrow().request_of(backend).is_some_and(|leased| leased != request)
    }

    /// Calls [`Table::started`] for a database that has been up for `uptime`.
    pub(crate) fn note_uptime(&self, database: &DatabaseName, uptime: TimeSpan) {
        let now = self.now().as_nanos();
        let then = Time::from_nanos(now.saturating_sub(uptime.as_nanos()));
        self.table.borrow_mut().started(database, then);
        self.count();
    }

    pub(crate) fn expire(&self) {
        let expired = self.table.borrow_mut().expire(self.now());
        self.numbers.expired(expired);
        self.count();
    }

    /// Returns the number of leases at present.
    pub(crate) fn leases(&self) -> usize {
        self.table.borrow().len()
    }

    fn count(&self) {
        self.numbers.leases(self.table.borrow().len());
    }
}

/// The refusal of a release while a cancellation is in doubt.
const IN_DOUBT: (Refusal, &str) =
    (Refusal::Taken, "a cancellation may still be under way on this connection: close it");

/// The response to a message, `None` if it is sent later, or the refusal.
type Answered = Result<Option<Answer>, (Refusal, &'static str)>;

fn refused(refusal: Refusal, why: &'static str) -> (Refusal, &'static str) {
    (refusal, why)
}

/// Returns the time left until `not_after`, in milliseconds since 1970, but at most `longest`. The
/// wall clock of this machine measures it. Without `not_after`, returns
/// `longest`. Returns `None` if `not_after` has passed.
fn left(not_after: Option<u64>, longest: TimeSpan) -> Option<TimeSpan> {
    let Some(not_after) = not_after else { return Some(longest) };
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as u64;
    let left = TimeSpan::from_millis(not_after.saturating_sub(now).min(longest.as_millis()));
    (left > TimeSpan::ZERO).then_some(left)
}
