//! What became of the last requests: for the access log, for whoever watches (`bywash tap`) and
//! for whoever asks about one of them (`bywash explain`).
//!
//! An entry is made when a request ends and is shared by all three. Nothing here waits: the log's
//! and the watchers' channels are bounded, and what finds one full is dropped and counted.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::{Arc, PoisonError};

use bywash_api::{Life, Request};
use bywash_config::Mode;
use bywash_engine::throttle::RuleId;
use bywash_engine::{ClassId, Outcome, SessionKey, Standing};
use bywash_units::{Span, Time};
use http::StatusCode;
use tokio::sync::mpsc;

use crate::access_log::{AccessLog, wall_clock_ms};
use crate::record::Verdict;
use crate::request::Peer;
use crate::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use crate::sync::{Mutex, MutexGuard};

/// One request, or a message that was none.
#[derive(Debug)]
pub(crate) struct Entry {
    /// Milliseconds since 1970, for people.
    pub(crate) time: u64,
    pub(crate) name: u64,
    pub(crate) client: IpAddr,
    pub(crate) protocol: &'static str,
    /// Method and target.
    pub(crate) message: Box<str>,
    pub(crate) status: Option<StatusCode>,
    /// `None` if it was no message.
    pub(crate) decided: Option<Decided>,
    /// What was wrong with it.
    pub(crate) fault: Option<&'static str>,
}

/// What was decided about a request, and what came of it.
#[derive(Debug)]
pub(crate) struct Decided {
    pub(crate) class: Arc<str>,
    pub(crate) class_id: ClassId,
    /// When it got a slot, if it did, and when it ended: on the engine's clock.
    pub(crate) runs_at: Option<Time>,
    pub(crate) ended: Time,
    /// If there are levels.
    pub(crate) level: Option<Arc<str>>,
    pub(crate) session: Option<SessionKey>,
    /// What it had proven; `None` if the engine was not asked.
    pub(crate) standing: Option<Standing>,
    pub(crate) mode: Mode,
    pub(crate) verdict: Verdict,
    pub(crate) outcome: Outcome,
    pub(crate) waited: Span,
    pub(crate) service: Span,
    pub(crate) server: Option<usize>,
    /// Of the elephant that it is.
    pub(crate) rule: Option<RuleId>,
    /// Bytes of bodies.
    pub(crate) sent: u64,
    pub(crate) received: u64,
}

/// Entries that are kept to be asked about.
pub(crate) const KEPT: usize = 10_000;

/// Bytes of method and target that are told. A longer one is kept with one byte more, which says that it was cut.
pub(crate) const KEPT_MESSAGE: usize = 512;

/// Entries that may wait for whoever counts them all: of a tenth of a second, at a hundred thousand a second.
const FOLLOWED: usize = 10_000;

/// Entries that may wait for one watcher, and watchers at once.
const WAITING: usize = 1024;
const WATCHERS: usize = 8;

pub(crate) struct Journal {
    log: AccessLog,
    last: Mutex<VecDeque<Arc<Entry>>>,
    watchers: Mutex<Vec<mpsc::Sender<Arc<Entry>>>>,
    /// How many there are: nobody takes the lock for none.
    watched: AtomicUsize,
    missed: AtomicU64,
    /// Who finds out what causes the load, and what was too much for it.
    follower: Mutex<Option<mpsc::Sender<Arc<Entry>>>>,
    follows: AtomicUsize,
    unfollowed: AtomicU64,
}

impl Entry {
    /// An empty one, of this moment.
    pub(crate) fn now() -> Self {
        Self {
            time: wall_clock_ms(),
            name: 0,
            client: IpAddr::from([0, 0, 0, 0]),
            protocol: "",
            message: Box::default(),
            status: None,
            decided: None,
            fault: None,
        }
    }

    /// Method and target, if nothing of them was cut.
    pub(crate) fn whole_message(&self) -> Option<(&str, &str)> {
        (self.message.len() <= KEPT_MESSAGE).then(|| self.message.split_once(' ')).flatten()
    }

    /// As operators and the log see it.
    pub(crate) fn told(&self) -> Request {
        Request {
            time: self.time,
            client: self.client.to_string(),
            status: self.status.map(|status| status.as_u16()),
            fault: self.fault.map(str::to_owned),
            life: self.decided.as_ref().map(|decided| self.life(decided)),
        }
    }

    fn life(&self, decided: &Decided) -> Life {
        let cut = self.message.len() > KEPT_MESSAGE;
        let told = self.message.get(..KEPT_MESSAGE).unwrap_or(&self.message);
        let (method, target) = told.split_once(' ').unwrap_or((told, ""));
        let (decision, reason) = decided.verdict.words();
        Life {
            request: format!("{:016x}", self.name),
            method: method.to_owned(),
            target: target.to_owned(),
            cut,
            protocol: self.protocol.to_owned(),
            class: decided.class.to_string(),
            level: decided.level.as_deref().map(str::to_owned),
            session: decided.session.map(|SessionKey(key)| format!("{key:016x}")),
            standing: decided.standing.map(|standing| standing.name().to_owned()),
            mode: decided.mode.name().to_owned(),
            decision: decision.map(str::to_owned),
            reason: reason.map(str::to_owned),
            outcome: decided.outcome.name().to_owned(),
            queue_wait_us: decided.waited.as_micros(),
            service_us: decided.service.as_micros(),
            server: decided.server,
            rule: decided.rule.map(|RuleId(number)| number),
            request_bytes: decided.sent,
            response_bytes: decided.received,
        }
    }
}

impl Verdict {
    /// Decision and reason as they stand in the log.
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

impl Journal {
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

    /// A request has ended.
    pub(crate) fn note(&self, entry: Arc<Entry>) {
        self.log.write(&entry);
        if self.watched.load(Ordering::Relaxed) > 0 {
            self.show(&entry);
        }
        if self.follows.load(Ordering::Relaxed) > 0 {
            self.hand_on(&entry);
        }
        let mut last = lock(&self.last);
        if last.len() == KEPT {
            last.pop_front();
        }
        last.push_back(entry);
    }

    /// A message was refused as such.
    pub(crate) fn refused_message(&self, peer: &Peer, fault: &'static str, status: StatusCode) {
        let (fault, status) = (Some(fault), Some(status));
        self.note(Arc::new(Entry { client: peer.address, fault, status, ..Entry::now() }));
    }

    /// Every entry from now on, for the one who counts them all.
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

    /// Entries that were too many for whoever counts them all.
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

    /// Every entry from now on. `None`: enough people watch already.
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

    /// The last, the oldest first.
    pub(crate) fn last(&self) -> Vec<Arc<Entry>> {
        lock(&self.last).iter().cloned().collect()
    }

    /// The request of this name, if it is among the last.
    pub(crate) fn find(&self, name: u64) -> Option<Arc<Entry>> {
        lock(&self.last).iter().rev().find(|entry| entry.name == name).cloned()
    }

    /// Entries that a watcher was too slow for.
    pub(crate) fn missed(&self) -> u64 {
        self.missed.load(Ordering::Relaxed)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(all(test, shuttle))]
mod schedules;
