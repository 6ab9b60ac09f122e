//! Elephants in force: which requests fall under which rule, and the store of all findings and
//! decisions.
//!
//! Three kinds of threads use this state:
//! - Requests call [`Elephants::rule_of`], which never waits: the rules are one immutable list that
//!   is exchanged as a whole.
//! - The watching thread (`decisions/watch.rs`) brings its findings, and ends rules whose time is
//!   over.
//! - Operators (`admin/elephants.rs`) read the store and decide.
//!
//! Each change of the store puts its rules in force and hands the store's text to
//! `state/writer.rs`, under one lock. No request takes that lock, and no thread holds it while
//! waiting for a disk.
//!
//! **Bytes.** Answers under a rule that limits bytes are throttled one by one, in a lane of the
//! network device ([`lanes`]) or by the rule's bucket ([`bytes`]). An answer begins with the bucket
//! (`request/answer.rs`). HTTP/1 writes one answer at a time, so each answer has the socket for
//! itself. Before the head is written, the connection is put into the lane of that answer
//! (`client/h1/answer.rs`). An answer that got the elephants' lane bypasses the bucket for as long
//! as there are lanes. On HTTP/2, answers share a socket, so they stay with the bucket.

mod bytes;
mod lanes;
mod report;
mod rules;

#[cfg(feature = "fleet")]
use std::sync::TryLockError;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use bywash_control::{RuleStore, Watch};
use bywash_engine::RuleId;
use bywash_engine::classify::Classifier;
use bywash_message::Request;

use crate::driver::Driver;
use crate::state::stored::Stored;

pub(crate) use bytes::Paced;
pub(crate) use lanes::{Lanes, NoLane};
pub(crate) use report::{ResourceReport, WatchReport};
pub(crate) use rules::Rules;

/// The state of a gateway's elephants, shared by its threads.
pub(crate) struct Elephants {
    rules: RwLock<Arc<Rules>>,
    /// Whether any rules are in force. If not, requests skip the look-up of their rule.
    has_rules: AtomicBool,
    /// The lanes of the network device for throttled answers.
    pub(crate) lanes: Lanes,
    findings: Mutex<Findings>,
    /// The watch, with its observations of requests and of the use of resources. A thread that
    /// locks both this and `findings` locks `findings` first.
    watch: Mutex<Watch>,
}

/// All findings and decisions about elephants, and the last report of the watch.
#[derive(Default)]
pub(crate) struct Findings {
    /// The findings and decisions, as they are saved.
    pub(crate) store: Stored<RuleStore>,
    /// The last report of the watch: how each resource was read.
    pub(crate) watch_report: WatchReport,
    /// A number that increases with every report and every decision, so that clients see changes.
    pub(crate) revision: u64,
}

impl Findings {
    /// Stores the latest report on how the resources were read, and increases `revision`. The caller
    /// stores the findings of the same evaluation afterwards.
    pub(crate) fn set_watch_report(&mut self, watch_report: WatchReport) {
        self.watch_report = watch_report;
        self.revision += 1;
    }
}

impl Elephants {
    pub(crate) fn new() -> Self {
        Self {
            rules: RwLock::default(),
            has_rules: AtomicBool::new(false),
            lanes: Lanes::open(),
            findings: Mutex::default(),
            watch: Mutex::new(Watch::new(
                Vec::new(),
                Vec::new(),
                bywash_units::TimeSpan::from_secs(1800),
            )),
        }
    }

    /// Returns the rule that a request falls under; `None` if it falls under none. The path is
    /// interpreted as the classifier interprets it.
    pub(crate) fn rule_of(&self, request: &Request, classifier: &Classifier) -> Option<RuleId> {
        if !self.has_rules.load(Ordering::Relaxed) {
            return None;
        }
        let (method, target) = (request.method.as_str(), &request.target);
        self.rules().of(method, target.path_and_query(), classifier.readings(target.path()))
    }

    /// Returns the pacing for an answer under this rule; `None` if there is no rule, or the rule
    /// does not limit bytes.
    pub(crate) fn paced(&self, rule: Option<RuleId>) -> Option<Paced> {
        let rule = rule?;
        self.rules().bucket_of(rule).map(Paced::new)
    }

    fn rules(&self) -> Arc<Rules> {
        Arc::clone(&self.rules.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Locks the findings and decisions.
    pub(crate) fn findings(&self) -> MutexGuard<'_, Findings> {
        self.findings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks the watch, to add observations or to query them.
    pub(crate) fn watched(&self) -> MutexGuard<'_, Watch> {
        self.watch.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks the watch, unless another thread has locked it.
    #[cfg(feature = "fleet")]
    pub(crate) fn try_watched(&self) -> Option<MutexGuard<'_, Watch>> {
        match self.watch.try_lock() {
            Ok(watch) => Some(watch),
            Err(TryLockError::Poisoned(watch)) => Some(watch.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Replaces the watch and so discards all observations. Called when the resources or the
    /// patterns that are always tracked have changed.
    pub(crate) fn watch(&self, watch: Watch) {
        *self.watched() = watch;
    }

    /// Puts the rules of the store in force, in place of all earlier ones. The engine gets a rule
    /// before requests fall under it. A request that still falls under a rule that the engine has
    /// removed is queued like any other.
    pub(crate) fn put_in_force(&self, store: &RuleStore, driver: &Driver) {
        let in_force = store.in_force();
        let rules = Arc::new(Rules::new(&in_force, &self.rules(), driver.now()));
        let lanes: Vec<_> = in_force.iter().map(|rule| (rule.id, rule.rule)).collect();
        driver.throttle(&lanes);
        self.has_rules.store(!rules.is_empty(), Ordering::Relaxed);
        *self.rules.write().unwrap_or_else(PoisonError::into_inner) = rules;
    }
}
