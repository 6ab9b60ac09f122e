//! The last requests and their outcomes: for the access log, for watchers (`bywash tap`), and for
//! questions about one request (`bywash explain`).
//!
//! An entry is made when a request ends, and these three uses share it. No request waits here: the
//! channels of the access log and of the watchers are bounded. An entry that finds a channel full
//! is dropped there and counted.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::{Arc, PoisonError};

use bywash_api::{Request, RequestLifecycle};
use bywash_config::Mode;
use bywash_engine::{ClassId, Outcome, PopulationKey, Reason, RuleId, SessionKey, Standing};
use bywash_units::{Time, TimeSpan};
use http::{StatusCode, Version};
use tokio::sync::mpsc;

use crate::process::memory::REQUEST_LOG_SIZE;
use crate::process::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use crate::process::sync::{Mutex, MutexGuard};
use crate::process::wall_clock::unix_ms;
use crate::telemetry::access_log::AccessLog;

/// One request that has ended, or one message that was not a valid request.
#[derive(Debug)]
pub(crate) struct Entry {
    /// The wall-clock time in milliseconds since 1970 at which the request ended.
    pub(crate) time: u64,
    pub(crate) name: u64,
    pub(crate) client: IpAddr,
    pub(crate) protocol: &'static str,
    /// The method and the target, separated by a space, possibly cut.
    pub(crate) message: Box<str>,
    pub(crate) status: Option<StatusCode>,
    /// The decision about the request. `None` if the message was not a valid request.
    pub(crate) decided: Option<Decided>,
    /// The fault of a message that was not a valid request.
    pub(crate) fault: Option<&'static str>,
}

/// The decision about a request, and its outcome.
#[derive(Debug)]
pub(crate) struct Decided {
    pub(crate) class: Arc<str>,
    pub(crate) class_id: ClassId,
    /// The time on the engine's clock at which the request began to run; `None` if it never ran.
    pub(crate) runs_at: Option<Time>,
    /// The time on the engine's clock at which the request ended.
    pub(crate) ended: Time,
    /// The name of the service level, if levels are configured.
    pub(crate) level: Option<Arc<str>>,
    pub(crate) session: Option<SessionKey>,
    /// The standing that the session had proven. `None` if the request was not submitted to the
    /// engine.
    pub(crate) standing: Option<Standing>,
    /// The name of the agent that signed the request, if one has.
    pub(crate) agent: Option<Box<str>>,
    /// The client's population and its level, if the session was new.
    pub(crate) population: Option<(PopulationKey, usize)>,
    pub(crate) mode: Mode,
    pub(crate) verdict: Verdict,
    pub(crate) outcome: Outcome,
    pub(crate) waited: TimeSpan,
    pub(crate) service: TimeSpan,
    pub(crate) server: Option<usize>,
    /// The rule that the request fell under, if its route is an elephant with a rule.
    pub(crate) rule: Option<RuleId>,
    /// The number of bytes of the request's body that were sent to the upstream.
    pub(crate) sent: u64,
    pub(crate) received: u64,
}

/// The maximum number of bytes of method and target that are reported. A longer text is stored with
/// one more byte, which shows that it was cut.
pub(crate) const KEPT_MESSAGE: usize = 512;

/// The maximum number of entries that wait for the follower, the thread that finds elephants: the
/// entries of a tenth of a second at 100,000 requests a second.
const FOLLOWED: usize = 10_000;

/// The maximum number of entries that wait for one watcher.
const WAITING: usize = 1024;
/// The maximum number of watchers at once.
const WATCHERS: usize = 8;

pub(crate) struct RequestLog {
    log: AccessLog,
    last: Mutex<VecDeque<Arc<Entry>>>,
    watchers: Mutex<Vec<mpsc::Sender<Arc<Entry>>>>,
    /// The number of watchers. While it is zero, no request takes the lock.
    watched: AtomicUsize,
    missed: AtomicU64,
    /// The channel to the thread that finds elephants, if that thread follows.
    follower: Mutex<Option<mpsc::Sender<Arc<Entry>>>>,
    follows: AtomicUsize,
    /// The number of entries since the start that were dropped because the follower was too slow.
    unfollowed: AtomicU64,
}

impl Entry {
    /// Returns an entry with the present time, and without any other content.
    pub(crate) fn now() -> Self {
        Self {
            time: unix_ms(),
            name: 0,
            client: IpAddr::from([0, 0, 0, 0]),
            protocol: "",
            message: Box::default(),
            status: None,
            decided: None,
            fault: None,
        }
    }

    /// Returns the method and the target. Returns `None` if they were cut.
    pub(crate) fn whole_message(&self) -> Option<(&str, &str)> {
        (self.message.len() <= KEPT_MESSAGE).then(|| self.message.split_once(' ')).flatten()
    }

    /// Returns the entry in the form that operators and the access log get.
    pub(crate) fn summary(&self) -> Request {
        Request {
            time: self.time,
            client: self.client.to_string(),
            status: self.status.map(|status| status.as_u16()),
            fault: self.fault.map(str::to_owned),
            life: self.decided.as_ref().map(|decided| self.life(decided)),
        }
    }

    fn life(&self, decided: &Decided) -> RequestLifecycle {
        let cut = self.message.len() > KEPT_MESSAGE;
        let kept = self.message.get(..KEPT_MESSAGE).unwrap_or(&self.message);
        let (method, target) = kept.split_once(' ').unwrap_or((kept, ""));
        let (decision, reason) = decided.verdict.words();
        RequestLifecycle {
            request: format!("{:016x}", self.name),
            method: method.to_owned(),
            target: target.to_owned(),
            cut,
            protocol: self.protocol.into(),
            class: decided.class.to_string(),
            level: decided.level.as_deref().map(str::to_owned),
            session: decided.session.map(|SessionKey(key)| format!("{key:016x}")),
            standing: decided.standing.map(|standing| standing.name().into()),
            agent: decided.agent.as_deref().map(str::to_owned),
            population: decided.population.map(|(key, _)| format!("{:016x}", key.0)),
            population_level: decided.population.map(|(_, level)| level),
            mode: decided.mode.name().into(),
            decision: decision.map(Cow::Borrowed),
            reason: reason.map(Cow::Borrowed),
            outcome: decided.outcome.name().into(),
            queue_wait_us: decided.waited.as_micros(),
            service_us: decided.service.as_micros(),
            server: decided.server,
            rule: decided.rule.map(|RuleId(number)| number),
            request_bytes: decided.sent,
            response_bytes: decided.received,
        }
    }
}

/// Returns the name of a protocol.
pub(crate) fn protocol(version: Version) -> &'static str {
    match version {
        Version::HTTP_10 => "HTTP/1.0",
        Version::HTTP_2 => "HTTP/2",
        // `Version` is an opaque struct, so the match needs a default. The message layer accepts
        // only HTTP/1.1 besides the versions above.
        _ => "HTTP/1.1",
    }
}

/// The engine's decision about a request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Verdict {
    /// There was no decision: the request was not submitted to the engine, or it ended before.
    None,
    /// The engine granted a slot after this wait.
    Run(Reason, TimeSpan),
    /// The engine refused the request after this wait.
    Shed(Reason, TimeSpan),
    /// The engine granted a slot, and stopped the request this long after its arrival.
    Stop(Reason, TimeSpan),
    /// The request was only observed, and would still have waited when it ended.
    StillWaiting,
}

impl Verdict {
    /// Returns the names of the decision and of its reason, as the log has them.
    pub(crate) const fn words(self) -> (Option<&'static str>, Option<&'static str>) {
        match self {
            Self::None => (None, None),
            Self::Run(reason, _) => (Some("run"), Some(reason.name())),
            Self::Shed(reason, _) => (Some("shed"), Some(reason.name())),
            Self::Stop(reason, _) => (Some("stop"), Some(reason.name())),
            Self::StillWaiting => (Some("wait"), None),
        }
    }
}

impl RequestLog {
    pub(crate) fn new(log: AccessLog) -> Self {
        Self {
            log,
            last: Mutex::default(),
            watchers: Mutex::default(),
            watched: AtomicUsize::new(0),
            missed: AtomicU64::new(0),
            follower: Mutex::default(),
            follows: AtomicUsize::new(0),
            unfollowed: AtomicU64::new(0),
        }
    }

    pub(crate) const fn log(&self) -> &AccessLog {
        &self.log
    }

    /// Records a request that has ended, and passes it to the access log, the watchers and the
    /// follower.
    pub(crate) fn note(&self, entry: Arc<Entry>) {
        self.log.write(&entry);
        if self.watched.load(Ordering::Relaxed) > 0 {
            self.show(&entry);
        }
        if self.follows.load(Ordering::Relaxed) > 0 {
            self.hand_on(&entry);
        }
        let mut last = lock(&self.last);
        if last.len() == REQUEST_LOG_SIZE {
            last.pop_front();
        }
        last.push_back(entry);
    }

    /// Records a message that was refused because it is not a valid request.
    pub(crate) fn refused_message(&self, client: IpAddr, fault: &'static str, status: StatusCode) {
        let (fault, status) = (Some(fault), Some(status));
        self.note(Arc::new(Entry { client, status, fault, ..Entry::now() }));
    }

    /// Returns a receiver of every entry from now on, for the thread that finds elephants. It
    /// replaces an earlier one.
    pub(crate) fn follow(&self) -> mpsc::Receiver<Arc<Entry>> {
        let (sender, receiver) = mpsc::channel(FOLLOWED);
        *lock(&self.follower) = Some(sender);
        self.follows.store(1, Ordering::Relaxed);
        receiver
    }

    fn hand_on(&self, entry: &Arc<Entry>) {
        let sent =
            lock(&self.follower).as_ref().map(|follower| follower.try_send(Arc::clone(entry)));
        match sent {
            Some(Err(mpsc::error::TrySendError::Full(_))) => {
                self.unfollowed.fetch_add(1, Ordering::Relaxed);
            }
            Some(Err(mpsc::error::TrySendError::Closed(_))) => {
                self.follows.store(0, Ordering::Relaxed);
            }
            Some(Ok(())) | None => {}
        }
    }

    /// Returns the number of entries since the start that were dropped because the follower was too
    /// slow.
    pub(crate) fn unfollowed(&self) -> u64 {
        self.unfollowed.load(Ordering::Relaxed)
    }

    fn show(&self, entry: &Arc<Entry>) {
        let mut watchers = lock(&self.watchers);
        watchers.retain(|watcher| match watcher.try_send(Arc::clone(entry)) {
            Ok(()) => true,
            Err(mpsc::error::TrySendError::Full(_)) => {
                self.missed.fetch_add(1, Ordering::Relaxed);
                true
            }
            Err(mpsc::error::TrySendError::Closed(_)) => false,
        });
        self.watched.store(watchers.len(), Ordering::Relaxed);
    }

    /// Returns a receiver of every entry from now on. Returns `None` if there are already as many
    /// watchers as allowed.
    pub(crate) fn watch(&self) -> Option<mpsc::Receiver<Arc<Entry>>> {
        let mut watchers = lock(&self.watchers);
        watchers.retain(|watcher| !watcher.is_closed());
        if watchers.len() >= WATCHERS {
            return None;
        }
        let (sender, receiver) = mpsc::channel(WAITING);
        watchers.push(sender);
        self.watched.store(watchers.len(), Ordering::Relaxed);
        Some(receiver)
    }

    /// Returns the last entries, at most [`REQUEST_LOG_SIZE`], oldest first.
    pub(crate) fn last(&self) -> Vec<Arc<Entry>> {
        lock(&self.last).iter().cloned().collect()
    }

    /// Returns the request with this name. Returns `None` if it is not among the last.
    pub(crate) fn find(&self, name: u64) -> Option<Arc<Entry>> {
        lock(&self.last).iter().rev().find(|entry| entry.name == name).cloned()
    }

    /// Returns the number of entries since the start that were dropped because a watcher was too
    /// slow.
    pub(crate) fn missed(&self) -> u64 {
        self.missed.load(Ordering::Relaxed)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(all(test, shuttle))]
mod schedules;
