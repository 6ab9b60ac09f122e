//! The controller of how long a request may run, per class: the engine's policy `loss`, driven by
//! an application.
//!
//! Source: paper 2, SERT §3.2, implemented in `bywash_engine::terminate`. This module is the
//! policy's driver: it reports arrivals, losses and the time. A request that a deadline ended is
//! lost if it had run for `run_min`. A client that leaves, and a deadline before `run_min`, say
//! nothing about the load: the driver reports such a request as cut off, and as one that did not
//! arrive.
//!
//! Each class has one lock, held for one call of the policy. A request's own lock (`token.rs`) is
//! taken before it, never after. A checkpoint of a request that has time left takes neither lock.

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

/// The class's number in its policy. Each class has a policy of its own, since each may have its
/// own parameters.
const ONLY: ClassId = ClassId(0);

/// Counts of a class since the start, and its present values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// All requests that have arrived.
    pub arrived: u64,
    /// Requests that lower the threshold: refused, terminated by the threshold, or ended by a
    /// deadline after they had run for `run_min`.
    pub lost: u64,
    /// Requests terminated by the threshold.
    pub terminated: u64,
    /// Requests ended because the time that their caller allowed was over.
    pub deadline: u64,
    /// Requests ended because their client had left.
    pub client_left: u64,
    /// Requests that called [`Token::cancel_termination`](crate::Token::cancel_termination).
    pub deferred: u64,
    /// Requests that have begun and not ended.
    pub running: u64,
    /// How long a request may run now.
    pub threshold: Duration,
}

/// The classes of this process. Clones share the same controller.
#[derive(Clone, Debug)]
pub struct Controller {
    classes: Arc<BTreeMap<String, Handle>>,
}

impl Controller {
    /// Checks the classes and creates the controller. The clock is tokio's, which tests can pause.
    pub fn new(classes: impl IntoIterator<Item = Class>) -> Result<Self, SettingError> {
        let start = Instant::now();
        Self::with_clock(classes, move || start.elapsed())
    }

    /// Creates a controller with another clock. The clock returns the time since a fixed moment and
    /// never goes backwards.
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

    /// Returns the class of this name.
    pub fn class(&self, name: &str) -> Result<Handle, SettingError> {
        self.classes.get(name).cloned().ok_or_else(|| SettingError::Unknown {
            class: name.to_owned(),
            known: self.classes.keys().map(String::as_str).collect::<Vec<_>>().join(", "),
        })
    }

    /// Returns the counts of every class, by name.
    pub fn stats(&self) -> BTreeMap<String, Stats> {
        self.classes.iter().map(|(name, class)| (name.clone(), class.stats())).collect()
    }
}

/// A class of a controller.
#[derive(Clone, Debug)]
pub struct Handle(pub(crate) Arc<Granted>);

impl Handle {
    /// Counts the arrival of a request that gets no token because it is refused. A call to
    /// [`Handle::lost`] must follow.
    pub fn arrived(&self) {
        self.0.at(|counts, _| counts.arrives());
    }

    /// Counts a request that was refused because of overload before it did any work.
    pub fn lost(&self) {
        self.0.loses();
    }

    /// Returns how long a request may run now.
    pub fn threshold(&self) -> Duration {
        self.0.may_run(self.0.clock.now()).to_std()
    }

    /// Returns the class's counts and present values.
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
    /// Counts the begin of a request and returns its time.
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

    /// Counts the end of a request that has run, terminated or done.
    pub(crate) fn ended(&self, start: Time, reason: Option<Reason>) {
        self.at(|Counts { policy, totals }, now| {
            let took = now.since(start);
            let outcome = match reason {
                None => RunOutcome::Done,
                Some(Reason::RanTooLong) => {
                    totals.terminated += 1;
                    RunOutcome::Stopped
                }
                Some(Reason::ClientLeft) => {
                    totals.client_left += 1;
                    RunOutcome::Cut
                }
                Some(Reason::Deadline) => {
                    totals.deadline += 1;
                    // A deadline before `run_min` is no loss: otherwise cheap requests with tiny
                    // deadlines would lower the threshold for all.
                    if took >= self.class.bounds().min {
                        RunOutcome::Stopped
                    } else {
                        RunOutcome::Cut
                    }
                }
            };
            match outcome {
                RunOutcome::Done => {}
                RunOutcome::Stopped => totals.lost += 1,
                RunOutcome::Cut => policy.left(ONLY, start),
            }
            policy.ended(Ran { class: ONLY, took, outcome });
        });
    }

    /// Returns how long a request may run at `now`.
    pub(crate) fn may_run(&self, now: Time) -> TimeSpan {
        let mut counts = self.counts.lock();
        counts.policy.tick(now);
        counts.policy.may_run(ONLY, self.class.bounds())
    }

    /// Returns the end of the present interval. The threshold does not change before it. The policy
    /// counts whole intervals from [`Time::ZERO`].
    pub(crate) fn until(&self, now: Time) -> Time {
        let interval = TimeSpan::from(self.class.interval);
        Time::ZERO + interval * (now.as_nanos() / interval.as_nanos() + 1)
    }

    /// Advances the policy's clock, then calls `tell`, both under the lock.
    fn at<T>(&self, tell: impl FnOnce(&mut Counts, Time) -> T) -> T {
        let mut counts = self.counts.lock();
        let now = self.clock.now();
        counts.policy.tick(now);
        tell(&mut counts, now)
    }
}

/// A source of time.
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
