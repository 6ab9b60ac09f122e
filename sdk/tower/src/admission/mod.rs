//! Admission control inside the application: a fixed number of requests run at once, and the others
//! wait in the engine's queue.
//!
//! This module is for services without a gateway in front. It is also for services that have a
//! limit of their own behind a gateway, for example a connection pool or a model on a GPU.
//! [`bywash_engine::Engine`] makes every decision: which request gets the next slot, which request
//! is evicted from a full queue, when the queue becomes LIFO, and what `Retry-After` says. This
//! module only drives the engine, like the gateway's driver (`crates/gateway/src/driver/mod.rs`),
//! for one process and with tokio's clock.
//!
//! **Classes.** The application names the class of each request, and the name is trusted. A request
//! of a [`Tier::Transaction`] class has the standing of a session that has already reached a
//! transaction. A request of a [`Tier::Browsing`] class has the standing of a new session. The
//! utilities of classes matter only to schedulers that use them (`always-fifo`). Nothing is learned
//! from past requests.
//!
//! **Tickets.** A request's ticket frees its entry of the [`RequestTable`] when it is dropped. So a
//! slot or a place in the queue is given back when a client leaves, when a handler panics and when
//! a handler is done. One lock protects the table. It is held for one call of the engine, and never
//! while a task is woken.
//!
//! **Time.** With `max_wait`, each waiting request has its own tokio timer. When a timer fires, the
//! request calls the engine's timer function, which handles all requests that have waited too long.
//!
//! **Together with termination.** Inside a `TerminateLayer`, the wait for a slot counts as part of
//! the request's time. So a deadline or the departure of the client also ends a request in the
//! queue. A refused request counts as lost. The slot is given back when the head of the response is
//! ready.

mod layer;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bywash_engine::catalog::{LimitSettings, ParameterError, find};
use bywash_engine::{
    Class, ClassId, ClassSet, Decision, End, Engine, Event, Options, Reason, Refusal, Request,
    RequestId, RequestTable, SessionKey, Tier, Wakers,
};
use bywash_units::{Time, TimeSpan, Utility};
use parking_lot::Mutex;
use tokio::time::Instant;

pub use layer::{AdmissionLayer, Admitting};

/// The settings of an [`Admission`].
#[derive(Clone, Debug)]
pub struct AdmissionSettings {
    limit: u32,
    scheduler: String,
    parameters: Vec<(String, String)>,
    max_wait: Option<Duration>,
    classes: Vec<Class>,
}

/// An invalid setting.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum AdmissionError {
    /// The limit is 0, so that no request could ever run.
    #[error("the limit is 0, and must be at least 1")]
    Limit,
    /// The scheduler is unknown, or it needs the load of the machine, which this module does not
    /// measure.
    #[error(
        "the scheduler `{0}` is unknown, or needs the load of the machine, which is not measured"
    )]
    Scheduler(String),
    /// The scheduler does not accept these parameters, according to its entry in the engine's
    /// catalogue.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Parameters(Vec<ParameterError>),
    /// No class is declared, more than 64 are declared, or two have the same name.
    #[error("there must be 1 to 64 classes, each with a name of its own")]
    Classes,
    /// No class of this name is declared.
    #[error("class `{0}` is not declared")]
    Unknown(String),
}

impl AdmissionSettings {
    /// Creates settings for at most `limit` running requests, with the scheduler `session-first`
    /// and without classes.
    pub fn new(limit: u32) -> Self {
        Self {
            limit,
            scheduler: "session-first".into(),
            parameters: Vec::new(),
            max_wait: None,
            classes: Vec::new(),
        }
    }

    /// Adds a class of requests with its tier. `utility` is the value of one request, relative to
    /// requests of other classes.
    #[must_use]
    pub fn class(mut self, name: impl Into<String>, tier: Tier, utility: f64) -> Self {
        self.classes.push(Class {
            name: name.into(),
            tier,
            utility: Utility::new(utility),
            revenue: Utility::default(),
            queue: None,
            requires: ClassSet::NONE,
            stop: None,
            fixed_value: None,
        });
        self
    }

    /// Sets the scheduler by its name in the engine's catalogue, with the given parameters.
    #[must_use]
    pub fn scheduler(mut self, name: &str, parameters: &[(&str, &str)]) -> Self {
        let owned = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
        (self.scheduler, self.parameters) =
            (name.to_owned(), parameters.iter().map(owned).collect());
        self
    }

    /// Sets the maximum time for which a request may wait for a slot. Without this setting, a
    /// request waits until it gets a slot, is evicted, or its client leaves.
    #[must_use]
    pub fn max_wait(self, span: Duration) -> Self {
        Self { max_wait: Some(span), ..self }
    }

    fn engine(&self) -> Result<Engine, AdmissionError> {
        if self.limit == 0 {
            return Err(AdmissionError::Limit);
        }
        let names: std::collections::BTreeSet<&str> =
            self.classes.iter().map(|class| &*class.name).collect();
        if names.len() != self.classes.len() || !(1..=ClassSet::MOST).contains(&names.len()) {
            return Err(AdmissionError::Classes);
        }
        let unknown = || AdmissionError::Scheduler(self.scheduler.clone());
        let given = self.parameters.iter().map(|(key, value)| (&**key, &**value));
        let scheduler = find(&self.scheduler).ok_or_else(unknown)?.settings(given);
        let scheduler = scheduler.map_err(AdmissionError::Parameters)?.scheduler(&self.classes);
        let options = Options {
            limit: LimitSettings::from(self.limit),
            max_wait: self.max_wait.map(TimeSpan::from),
            ..Options::default()
        };
        let engine = Engine::new(self.classes.clone(), scheduler, options);
        if engine.meter().is_some() { Err(unknown()) } else { Ok(engine) }
    }
}

/// The queue in front of a service, with a fixed number of slots. Clones share the same queue.
#[derive(Clone)]
pub struct Admission(Arc<Driver>);

struct Driver {
    started: Instant,
    max_wait: Option<Duration>,
    requests: Mutex<RequestTable>,
    /// The number of transactions so far. Each transaction gets a session of its own with this
    /// number.
    sessions: AtomicU64,
}

/// The counts of an [`Admission`]. All are present values except `refused`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AdmissionStats {
    /// The number of slots: the most requests that run at a time.
    pub limit: u32,
    /// The number of requests that hold a slot now.
    pub running: u32,
    /// The number of requests that wait for a slot now.
    pub waiting: u32,
    /// The total number of refused requests since the admission was created.
    pub refused: u64,
}

/// The error of a request that was refused instead of getting a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("refused: {}", reason.name())]
pub struct Refused {
    /// The reason why the request was refused.
    pub reason: Reason,
    /// The time after which the client may retry.
    pub retry_after: Duration,
}

impl Admission {
    /// Checks the settings and creates the admission. Time is measured by tokio's clock, which
    /// tests can pause.
    pub fn new(settings: &AdmissionSettings) -> Result<Self, AdmissionError> {
        let requests = Mutex::new(RequestTable::new(settings.engine()?));
        let (started, max_wait) = (Instant::now(), settings.max_wait);
        Ok(Self(Arc::new(Driver { started, max_wait, requests, sessions: AtomicU64::new(0) })))
    }

    /// Returns the present counts of this admission.
    pub fn stats(&self) -> AdmissionStats {
        let requests = self.0.requests.lock();
        let status = requests.engine.status(self.0.now());
        AdmissionStats {
            limit: status.limit,
            running: status.running,
            waiting: status.waiting,
            refused: requests.refused,
        }
    }

    fn class(&self, name: &str) -> Result<ClassId, AdmissionError> {
        let requests = self.0.requests.lock();
        let place = requests.engine.classes().iter().position(|class| class.name == name);
        // The cast cannot truncate: there are at most 64 classes.
        let unknown = || AdmissionError::Unknown(name.to_owned());
        place.map(|place| ClassId(place as u8)).ok_or_else(unknown)
    }

    /// Registers a request that has arrived, and returns its ticket. The engine decides at once
    /// whether the request gets a slot, waits or is refused.
    fn arrive(&self, class: ClassId) -> Ticket {
        let id = self.0.with(|requests, now, wakers| {
            let mut request = Request::of(class);
            if requests.engine.classes()[class.index()].tier == Tier::Transaction {
                let session = self.0.sessions.fetch_add(1, Ordering::Relaxed) + 1;
                request.session = Some(SessionKey(session));
                request.proven = ClassSet::NONE.with(class);
            }
            requests.arrive(now, request, wakers)
        });
        Ticket { driver: self.0.clone(), id, end: None }
    }
}

impl fmt::Debug for Admission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Admission").field(&self.stats()).finish()
    }
}

impl Driver {
    fn now(&self) -> Time {
        Time::ZERO + TimeSpan::from(self.started.elapsed())
    }

    fn with<R>(&self, act: impl FnOnce(&mut RequestTable, Time, &mut Wakers) -> R) -> R {
        let mut wakers = Wakers::new();
        let result = act(&mut self.requests.lock(), self.now(), &mut wakers);
        wakers.into_iter().for_each(Waker::wake);
        result
    }
}

/// The claim of a request on its place in the queue or on its slot. Dropping the ticket gives the
/// place or the slot back.
struct Ticket {
    driver: Arc<Driver>,
    id: RequestId,
    /// How the request ended, as reported to the engine on drop. `None` means that the request was
    /// abandoned.
    end: Option<End>,
}

impl Ticket {
    /// Polls for the slot. The result is `Ok` when the request has a slot, and an error when it is
    /// refused. Until then, stores the waker.
    fn poll(&self, cx: &Context<'_>) -> Poll<Result<(), Refused>> {
        self.driver.requests.lock().poll(self.id, cx, |decision| match decision {
            Decision::Waits => None,
            Decision::Refused(Refusal { reason, retry_after, .. }) => {
                Some(Err(Refused { reason, retry_after: retry_after.to_std() }))
            }
            // `Stopped` does not occur, because no class can be stopped.
            Decision::Granted { .. } | Decision::Stopped(_) => Some(Ok(())),
        })
    }

    fn ended(mut self, end: End) {
        self.end = Some(end);
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let id = self.id;
        let end = self.end.or_else(|| std::thread::panicking().then_some(End::Failed));
        let how = end.map_or(Event::ClientGone { id }, |end| Event::Finished { id, end });
        self.driver.with(|requests, now, wakers| requests.release(now, id, how, wakers));
    }
}
