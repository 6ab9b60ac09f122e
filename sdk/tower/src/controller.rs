//! How long a request may run, by class: the engine's policy `loss`, driven by an application.
//!
//! Source: seed 2, SERT §3.2, in `bywash_engine::terminate`. What is here is what a driver does: it tells the
//! policy what came, what was lost and what time it is. A request that a deadline ended is lost if it had run for
//! `run_min`. A client who leaves, or a deadline before that, says nothing of how much there is to do: it is told as
//! one that was cut off, and that did not arrive.
//!
//! One lock for each class, held for one call of the policy. A request's own lock (`token.rs`) is taken before
//! it, never after. A checkpoint of a request that has time left takes neither.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bywash_engine::ClassId;
use bywash_engine::terminate::{Fate, Ran, Terminate};
use bywash_units::{Span, Time};
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::class::{Class, SettingError};
use crate::request::Brought;
use crate::token::{Reason, Token};

/// Each class has a policy of its own, as each may have its own parameters: this is its number there.
const ONLY: ClassId = ClassId(0);

/// A class in numbers: counts since the start, and what holds now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Requests that came: all of them.
    pub arrived: u64,
    /// Of these refused, terminated by the threshold, or ended by a deadline after `run_min`: what lowers it.
    pub lost: u64,
    /// Terminated by the threshold.
    pub terminated: u64,
    /// Ended because the time that their caller had left to them was over.
    pub deadline: u64,
    /// Ended because their client had left.
    pub client_left: u64,
    /// Those who called [`Token::cancel_termination`].
    pub deferred: u64,
    /// Begun and not ended.
    pub running: u64,
    /// How long a request may run now.
    pub threshold: Duration,
}

/// The classes of this process. A clone is the same controller.
#[derive(Clone, Debug)]
pub struct Controller {
    classes: Arc<BTreeMap<String, Handle>>,
}

impl Controller {
    /// Checks the classes. Time is tokio's, which tests can pause.
    pub fn new(classes: impl IntoIterator<Item = Class>) -> Result<Self, SettingError> {
        let start = Instant::now();
        Self::with_clock(classes, move || start.elapsed())
    }

    /// With a clock of one's own: the time since some moment, which never goes back.
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

    /// A class by its name.
    pub fn class(&self, name: &str) -> Result<Handle, SettingError> {
        self.classes.get(name).cloned().ok_or_else(|| SettingError::Unknown {
            class: name.to_owned(),
            known: self.classes.keys().map(String::as_str).collect::<Vec<_>>().join(", "),
        })
    }

    /// Every class in numbers, by name.
    pub fn stats(&self) -> BTreeMap<String, Stats> {
        self.classes.iter().map(|(name, class)| (name.clone(), class.stats())).collect()
    }
}

/// A class of a controller.
#[derive(Clone, Debug)]
pub struct Handle(pub(crate) Arc<Granted>);

impl Handle {
    /// The token of a request that begins now, with so much time left if it brought a deadline along.
    pub fn begin(&self, left: Option<Duration>) -> Token {
        self.begin_with(left, Brought::default())
    }

    /// The token of a request that has brought a name or a trace along as well.
    pub fn begin_with(&self, left: Option<Duration>, brought: Brought) -> Token {
        Token::new(self.0.clone(), left.map(Span::from), brought)
    }

    /// A request came that gets no token, because it is refused: [`Handle::lost`] follows.
    pub fn arrived(&self) {
        self.0.at(|counts, _| counts.arrives());
    }

    /// A request was refused before it did anything, as there was too much to do.
    pub fn lost(&self) {
        self.0.loses();
    }

    /// How long a request may run now.
    pub fn threshold(&self) -> Duration {
        self.0.may_run(self.0.clock.now()).to_std()
    }

    /// The class in numbers.
    pub fn stats(&self) -> Stats {
        Stats { threshold: self.threshold(), ..self.0.counts.lock().totals }
    }
}

/// One class: its settings, its policy, its counts.
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
    /// One begins. When that was.
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

    /// One that ran is over, terminated or done.
    pub(crate) fn ended(&self, start: Time, reason: Option<Reason>) {
        self.at(|Counts { policy, totals }, now| {
            let took = now.since(start);
            let fate = match reason {
                None => Fate::Done,
                Some(Reason::RanTooLong) => {
                    totals.terminated += 1;
                    Fate::Stopped
                }
                Some(Reason::ClientLeft) => {
                    totals.client_left += 1;
                    Fate::Cut
                }
                Some(Reason::Deadline) => {
                    totals.deadline += 1;
                    // Before that, cheap requests with tiny deadlines would lower everybody's threshold.
                    if took >= self.class.bounds().min { Fate::Stopped } else { Fate::Cut }
                }
            };
            match fate {
                Fate::Done => {}
                Fate::Stopped => totals.lost += 1,
                Fate::Cut => policy.left(ONLY, start),
            }
            policy.ended(Ran { class: ONLY, took, fate });
        });
    }

    /// How long a request may run.
    pub(crate) fn may_run(&self, now: Time) -> Span {
        let mut counts = self.counts.lock();
        counts.policy.tick(now);
        counts.policy.may_run(ONLY, self.class.bounds())
    }

    /// The end of this interval: till then the threshold stays. The policy counts whole intervals from
    /// [`Time::ZERO`].
    pub(crate) fn until(&self, now: Time) -> Time {
        let interval = Span::from(self.class.interval);
        Time::ZERO + interval * (now.as_nanos() / interval.as_nanos() + 1)
    }

    /// Tells the policy something, after what time it is.
    fn at<T>(&self, tell: impl FnOnce(&mut Counts, Time) -> T) -> T {
        let mut counts = self.counts.lock();
        let now = self.clock.now();
        counts.policy.tick(now);
        tell(&mut counts, now)
    }
}

/// Where time comes from.
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
        Time::ZERO + Span::from((self.read)().saturating_sub(self.start))
    }
}

impl std::fmt::Debug for Clock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Clock").field("now", &self.now()).finish()
    }
}
