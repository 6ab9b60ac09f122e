//! Controls how long a request may run, per class: the engine's policy `loss`, driven by an
//! application.
//!
//! Source: paper 2, SERT §3.2, implemented in `bywash_engine::terminate`. This module drives the
//! policy: it reports arrivals, losses and the time. A request that its deadline ended counts as
//! lost if it had run for at least `run_min`. The departure of a client, or a deadline before
//! `run_min`, says nothing about the load. Such a request is reported to the policy as cut off, and
//! the policy counts neither its arrival nor a loss.
//!
//! Each class has one lock, which is held for one call of the policy. A request's own lock
//! (`token.rs`) is taken before the lock of its class, never after. A checkpoint takes neither lock
//! before the moment at which its request could first be terminated.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bywash_engine::ClassId;
use bywash_engine::terminate::{Ran, RunOutcome, Terminate};
use bywash_units::{Time, TimeSpan};
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::class::{Class, SettingError};
use crate::terminated::Reason;

/// The id of the class in its policy. It is always the same, because each class has a policy of its
/// own with its own parameters.
const ONLY: ClassId = ClassId(0);

/// The counts of one class since the start, and its present values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// The total number of requests that have arrived, including refused ones.
    pub arrived: u64,
    /// The total number of lost requests, which lower the threshold: refused, terminated by the
    /// threshold, or ended by a deadline after at least `run_min`.
    pub lost: u64,
    /// The total number of requests terminated because they ran longer than the threshold.
    pub terminated: u64,
    /// The total number of requests ended by the deadline that their caller had set.
    pub deadline: u64,
    /// The total number of requests ended because their client had left.
    pub client_left: u64,
    /// The total number of requests that called
    /// [`Token::cancel_termination`](crate::Token::cancel_termination) with success.
    pub deferred: u64,
    /// The number of requests that run now: they have begun and not ended.
    pub running: u64,
    /// The present threshold: the time after which a request is terminated.
    pub threshold: Duration,
}

/// The classes of this process and their thresholds. Clones share the same controller.
#[derive(Clone, Debug)]
pub struct Controller {
    classes: Arc<BTreeMap<String, Handle>>,
}

impl Controller {
    /// Checks the classes and creates the controller. Time is measured by tokio's clock, which
    /// tests can pause. Returns the first error in a class.
    pub fn new(classes: impl IntoIterator<Item = Class>) -> Result<Self, SettingError> {
        let start = Instant::now();
        Self::with_clock(classes, move || start.elapsed())
    }

    /// Creates a controller with another clock. `clock` must return the time since a fixed moment
    /// and never go backwards.
    pub fn with_clock(
        classes: impl IntoIterator<Item = Class>,
        clock: impl Fn() -> Duration + Send + Sync + 'static,
    ) -> Result<Self, SettingError> {
        let clock = Clock::new(clock);
        let mut handles = BTreeMap::new();
        for class in classes {
            let (name, policy) = (class.name.clone(), class.policy()?.termination());
            let counts = Mutex::new(Counts { policy, totals: Stats::default() });
            let granted = Granted { class, clock: clock.clone(), counts };
            if handles.insert(name.clone(), Handle(Arc::new(granted))).is_some() {
                return Err(SettingError::Twice(name));
            }
        }
        Ok(Self { classes: Arc::new(handles) })
    }

    /// Returns the class with this name, or an error if no such class is declared.
    pub fn class(&self, name: &str) -> Result<Handle, SettingError> {
        self.classes.get(name).cloned().ok_or_else(|| SettingError::Unknown {
            class: name.to_owned(),
            known: self.classes.keys().map(String::as_str).collect::<Vec<_>>().join(", "),
        })
    }

    /// Returns the counts of every class, keyed by the name of the class.
    pub fn stats(&self) -> BTreeMap<String, Stats> {
        self.classes.iter().map(|(name, class)| (name.clone(), class.stats())).collect()
    }
}

/// A handle of one class of a controller. Clones share the same class.
#[derive(Clone, Debug)]
pub struct Handle(pub(crate) Arc<Granted>);

impl Handle {
    /// Counts the arrival of a request that gets no token because the application refuses it. A
    /// call of [`Handle::lost`] must follow.
    pub fn arrived(&self) {
        self.0.at(|counts, _| counts.arrives());
    }

    /// Counts a request as lost that was refused because of overload before any work on it.
    pub fn lost(&self) {
        self.0.loses();
    }

    /// Returns the time for which a request of this class may run at the present load.
    pub fn threshold(&self) -> Duration {
        self.0.may_run(self.0.clock.now()).to_std()
    }

    /// Returns the counts of this class and its present values.
    pub fn stats(&self) -> Stats {
        Stats { threshold: self.threshold(), ..self.0.counts.lock().totals }
    }
}

/// A class with its settings, its policy and its counts.
#[derive(Debug)]
pub(crate) struct Granted {
    pub(crate) class: Class,
    pub(crate) clock: Clock,
    counts: Mutex<Counts>,
}

#[derive(Debug)]
struct Counts {
    policy: Box<dyn Terminate>,
    totals: Stats,
}

impl Counts {
    fn arrives(&mut self) {
        self.policy.arrived(ONLY);
        self.totals.arrived += 1;
    }
}

impl Granted {
    /// Counts the beginning of a request, and returns the present time.
    pub(crate) fn begins(&self) -> Time {
        self.at(|counts, now| {
            counts.arrives();
            counts.totals.running += 1;
            now
        })
    }

    pub(crate) fn loses(&self) {
        self.at(|counts, _| {
            counts.policy.lost(ONLY);
            counts.totals.lost += 1;
        });
    }

    pub(crate) fn ends(&self) {
        self.counts.lock().totals.running -= 1;
    }

    pub(crate) fn defers(&self) {
        self.counts.lock().totals.deferred += 1;
    }

    /// Counts the end of a request that has run. `reason` says why it was terminated, or is `None`
    /// if it was completed.
    pub(crate) fn ended(&self, start: Time, reason: Option<Reason>) {
        self.at(|Counts { policy, totals }, now| {
            let took = now.since(start);
            match reason {
                None => {}
                Some(Reason::RanTooLong) => totals.terminated += 1,
                Some(Reason::ClientLeft) => totals.client_left += 1,
                Some(Reason::Deadline) => totals.deadline += 1,
            }
            // An end before `run_min` is no loss: otherwise cheap requests with very short
            // deadlines would lower the threshold for all requests.
            let is_early = took < self.class.bounds().min;
            let outcome = match reason {
                None => RunOutcome::Done,
                Some(Reason::ClientLeft) => RunOutcome::Cut,
                Some(Reason::RanTooLong | Reason::Deadline) if is_early => RunOutcome::Cut,
                Some(Reason::RanTooLong | Reason::Deadline) => RunOutcome::Stopped,
            };
            match outcome {
                RunOutcome::Done => {}
                RunOutcome::Stopped => totals.lost += 1,
                RunOutcome::Cut => policy.left(ONLY, start),
            }
            policy.ended(Ran { class: ONLY, took, outcome });
        });
    }

    /// Returns the time for which a request may run, counted from `now`.
    pub(crate) fn may_run(&self, now: Time) -> TimeSpan {
        let mut counts = self.counts.lock();
        counts.policy.tick(now);
        counts.policy.may_run(ONLY, self.class.bounds())
    }

    /// Returns the end of the present interval, before which the threshold does not change. The
    /// policy counts whole intervals from [`Time::ZERO`].
    pub(crate) fn until(&self, now: Time) -> Time {
        let interval = TimeSpan::from(self.class.interval);
        Time::ZERO + interval * (now.as_nanos() / interval.as_nanos() + 1)
    }

    /// Reports the present time to the policy, then calls `tell`. Both happen under the lock.
    fn at<T>(&self, tell: impl FnOnce(&mut Counts, Time) -> T) -> T {
        let mut counts = self.counts.lock();
        let now = self.clock.now();
        counts.policy.tick(now);
        tell(&mut counts, now)
    }
}

/// A clock that reads as zero when it is created.
#[derive(Clone)]
pub(crate) struct Clock {
    read: Arc<dyn Fn() -> Duration + Send + Sync>,
    start: Duration,
}

impl Clock {
    fn new(read: impl Fn() -> Duration + Send + Sync + 'static) -> Self {
        Self { start: read(), read: Arc::new(read) }
    }

    pub(crate) fn now(&self) -> Time {
        Time::ZERO + TimeSpan::from((self.read)().saturating_sub(self.start))
    }
}

impl std::fmt::Debug for Clock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Clock").field("now", &self.now()).finish()
    }
}
