//! The token of one request: may it go on?
//!
//! States: `Running`, then one of `Settled` (its response has begun), `Deferred` (it asked not to be
//! terminated), `Terminated`; from any of them `Ended`. A client who leaves terminates a running or a settled
//! request, for nobody reads its response; a deferred one goes on. A state changes under the token's lock.
//! Whoever is terminated has the last word from the moment that a checkpoint of its own has told it (`is_told`);
//! until then the layer drops it. A thread or a task that works for it may be told while the handler waits for
//! something else: that does not count. To read that it is over tells nobody.
//!
//! `not_before` makes a checkpoint cheap: the moment before which nothing can terminate this request. A threshold
//! changes only at the end of an interval and never falls below `run_min`, so until then the clock decides alone.
//! It is also when a timer has to look again.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use bywash_engine::Reason as Gateways;
use bywash_units::{Span, Time};
use parking_lot::lock_api::GetThreadId;
use parking_lot::{Mutex, RawThreadId};

use crate::controller::Granted;
use crate::request::Brought;
#[cfg(feature = "sentry")]
use crate::sentry::Sentry;

/// Why a request was terminated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reason {
    /// It had run as long as a request of its class may.
    RanTooLong,
    /// Its client closed the connection.
    ClientLeft,
    /// The time that its caller had left to it was over.
    Deadline,
}

impl Reason {
    /// The word for it: the gateway's, where it has one.
    pub const fn name(self) -> &'static str {
        match self {
            Self::RanTooLong => Gateways::RanTooLong.name(),
            Self::ClientLeft => Gateways::ClientLeft.name(),
            Self::Deadline => "deadline",
        }
    }
}

/// This request is over: whoever works for it stops.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("class `{class}`: {}", reason.name())]
pub struct Terminated {
    /// Its class.
    pub class: String,
    /// Why.
    pub reason: Reason,
    /// When it may come again: of use after [`Reason::RanTooLong`], for the other reasons say nothing of it.
    pub retry_after: Duration,
}

/// One request. A clone is the same token.
#[derive(Clone, Debug)]
pub struct Token(Arc<Life>);

#[derive(Debug)]
struct Life {
    granted: Arc<Granted>,
    brought: Brought,
    /// Who knows of leases of its, and is told when it is over.
    #[cfg(feature = "sentry")]
    sentries: Mutex<Vec<Sentry>>,
    start: Time,
    /// Until when its caller wants it.
    own: Time,
    not_before: AtomicU64,
    only_at_checkpoints: AtomicBool,
    /// The thread that runs its handler now; 0 if none does. A thread only looks for itself, so no order is needed.
    runs_on: AtomicUsize,
    state: Mutex<State>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Running,
    Settled,
    Deferred,
    Terminated { reason: Reason, is_told: bool, is_over: bool },
    Ended,
}

const NEVER: Time = Time::from_nanos(u64::MAX);

impl Token {
    pub(crate) fn new(granted: Arc<Granted>, left: Option<Span>, brought: Brought) -> Self {
        let start = granted.begins();
        let life = Life {
            granted,
            brought,
            #[cfg(feature = "sentry")]
            sentries: Mutex::default(),
            start,
            own: left.map_or(NEVER, |left| start + left),
            not_before: AtomicU64::new(0),
            only_at_checkpoints: AtomicBool::new(false),
            runs_on: AtomicUsize::new(0),
            state: Mutex::new(State::Running),
        };
        life.look_again(start);
        Self(Arc::new(life))
    }

    /// The name of its class.
    pub fn class(&self) -> &str {
        &self.0.granted.class.name
    }

    pub(crate) fn brought(&self) -> &Brought {
        &self.0.brought
    }

    /// When it is terminated as things are, on the clock that began with the controller; `None` if it is not.
    pub fn deadline(&self) -> Option<Duration> {
        let now = self.0.granted.clock.now();
        match *self.0.state.lock() {
            State::Running | State::Terminated { .. } => {
                Some(self.0.due(now).since(Time::ZERO).to_std())
            }
            State::Settled | State::Deferred | State::Ended => None,
        }
    }

    /// The time that is left to it as things are; `None` if that has no limit.
    pub fn left(&self) -> Option<Duration> {
        let now = self.0.granted.clock.now();
        match *self.0.state.lock() {
            State::Running => Some(self.0.due(now).since(now).to_std()),
            State::Terminated { .. } => Some(Duration::ZERO),
            State::Settled | State::Deferred | State::Ended => None,
        }
    }

    /// The most that can still be left to it, whatever the load; `None` if that has no limit.
    #[cfg(feature = "sentry")]
    pub(crate) fn left_at_most(&self) -> Option<Duration> {
        let now = self.0.granted.clock.now();
        let longest = self.0.start + self.0.granted.class.bounds().max;
        match *self.0.state.lock() {
            State::Running => Some(longest.min(self.0.own).since(now).to_std()),
            State::Terminated { .. } => Some(Duration::ZERO),
            State::Settled | State::Deferred | State::Ended => None,
        }
    }

    /// Whether it is over; also once it is overdue and has not been told. To ask changes nothing.
    pub fn is_terminated(&self) -> bool {
        let state = self.0.state.lock();
        matches!(*state, State::Terminated { .. }) || self.0.overdue(*state).is_some()
    }

    /// Why it is over, once it has been told or dropped.
    pub fn reason(&self) -> Option<Reason> {
        match *self.0.state.lock() {
            State::Terminated { reason, .. } => Some(reason),
            State::Running | State::Settled | State::Deferred | State::Ended => None,
        }
    }

    /// An error if this request is over.
    pub fn checkpoint(&self) -> Result<(), Terminated> {
        let now = self.0.granted.clock.now();
        if now.as_nanos() < self.0.not_before.load(Ordering::Acquire) {
            return Ok(());
        }
        self.look();
        self.tell()
    }

    /// The last checkpoint: once it is passed, nothing terminates this request. Before a write, for one. If its
    /// client leaves, the layer has tokio run what is left of its future.
    pub fn cancel_termination(&self) -> Result<(), Terminated> {
        self.look();
        {
            let mut state = self.0.state.lock();
            if matches!(*state, State::Running | State::Settled) {
                self.0.becomes(&mut state, State::Deferred);
                self.0.granted.defers();
            }
        }
        self.tell()
    }

    fn tell(&self) -> Result<(), Terminated> {
        if let State::Terminated { is_told, .. } = &mut *self.0.state.lock() {
            *is_told |= self.0.runs_on.load(Ordering::Relaxed) == this_thread();
        }
        self.terminated().map_or(Ok(()), Err)
    }

    /// A step of its handler: what a checkpoint tells meanwhile on this thread, the handler knows.
    pub(crate) fn run<T>(&self, step: impl FnOnce() -> T) -> T {
        self.0.runs_on.store(this_thread(), Ordering::Relaxed);
        let done = step();
        self.0.runs_on.store(0, Ordering::Relaxed);
        done
    }

    /// The layer does not drop this request's future once it is overdue or its client has left: only its
    /// checkpoints end it.
    pub fn only_at_checkpoints(&self) {
        self.0.only_at_checkpoints.store(true, Ordering::Relaxed);
    }

    /// Whether its future goes on when its client has left.
    pub(crate) fn outlives_its_client(&self) -> bool {
        self.is_only_at_checkpoints() || *self.0.state.lock() == State::Deferred
    }

    pub(crate) fn is_only_at_checkpoints(&self) -> bool {
        self.0.only_at_checkpoints.load(Ordering::Relaxed)
    }

    /// Terminates it if it is overdue. Whether that was now.
    pub fn look(&self) -> bool {
        let mut state = self.0.state.lock();
        let reason = self.0.overdue(*state);
        if let Some(reason) = reason {
            self.0.terminate(&mut state, reason);
        }
        reason.is_some()
    }

    /// Whether it is over and no checkpoint of its own has told it.
    pub(crate) fn is_to_be_dropped(&self) -> bool {
        self.look();
        matches!(*self.0.state.lock(), State::Terminated { is_told: false, .. })
    }

    /// Whether it is over and a checkpoint of its own has told it.
    pub(crate) fn is_told(&self) -> bool {
        matches!(*self.0.state.lock(), State::Terminated { is_told: true, .. })
    }

    /// It was let in, and is refused all the same, as there is too much to do.
    pub(crate) fn refused(&self) {
        self.0.granted.loses();
    }

    /// The first byte of its response goes out: no time terminates it any more.
    pub fn settle(&self) {
        let mut state = self.0.state.lock();
        if *state == State::Running {
            self.0.becomes(&mut state, State::Settled);
        }
    }

    /// Its client has left. A gateway closes the connection a moment before the time is over here: who leaves in
    /// the last tenth of it has come to his deadline, unless his response has begun.
    pub fn leave(&self) {
        let Life { start, own, granted, .. } = &*self.0;
        let mut state = self.0.state.lock();
        let reason = match *state {
            State::Running if granted.clock.now() >= *own - own.since(*start) / 10 => {
                Reason::Deadline
            }
            State::Running | State::Settled => Reason::ClientLeft,
            State::Deferred | State::Terminated { .. } | State::Ended => return,
        };
        self.0.terminate(&mut state, reason);
    }

    /// Nobody works for it any more. Once is enough, twice is no harm.
    pub fn end(&self) {
        let mut state = self.0.state.lock();
        match &mut *state {
            State::Running | State::Settled | State::Deferred => {
                self.0.becomes(&mut state, State::Ended);
                self.0.granted.ended(self.0.start, None);
                self.0.granted.ends();
            }
            // Whoever still works for one that was terminated is still to be told.
            State::Terminated { is_over, .. } => {
                if !std::mem::replace(is_over, true) {
                    self.0.granted.ends();
                }
            }
            State::Ended => {}
        }
    }

    /// What a checkpoint returns, if somebody has noticed.
    pub fn terminated(&self) -> Option<Terminated> {
        self.reason().map(|reason| self.over(reason))
    }

    /// The error of this request, if it is over for this reason.
    pub(crate) fn over(&self, reason: Reason) -> Terminated {
        let class = &self.0.granted.class;
        Terminated { class: class.name.clone(), reason, retry_after: class.come_again() }
    }

    /// Whether its connections may be leased: not if nothing ends it any more. If so, this sentry will be told when
    /// it is over.
    #[cfg(feature = "sentry")]
    pub(crate) fn leases(&self, sentry: &Sentry) -> Result<bool, Terminated> {
        self.checkpoint()?;
        // Whoever terminates it has this lock.
        let state = self.0.state.lock();
        match *state {
            State::Running | State::Settled => {
                let mut sentries = self.0.sentries.lock();
                if !sentries.contains(sentry) {
                    sentries.push(sentry.clone());
                }
                Ok(true)
            }
            State::Terminated { reason, .. } => Err(self.over(reason)),
            State::Deferred | State::Ended => Ok(false),
        }
    }

    /// How long nothing can terminate it; `None` if no time does.
    pub(crate) fn calm(&self) -> Option<Duration> {
        let calm_until = Time::from_nanos(self.0.not_before.load(Ordering::Acquire));
        let now = self.0.granted.clock.now();
        (calm_until != NEVER).then(|| calm_until.since(now).to_std())
    }
}

impl Life {
    fn due(&self, now: Time) -> Time {
        (self.start + self.granted.may_run(now)).min(self.own)
    }

    /// Why it is to be terminated now; `None` if it is not, or was already.
    fn overdue(&self, state: State) -> Option<Reason> {
        let now = self.granted.clock.now();
        if state != State::Running || now.as_nanos() < self.not_before.load(Ordering::Acquire) {
            return None;
        }
        let due = self.due(now);
        if now < due {
            self.look_again(now);
            return None;
        }
        Some(if self.own <= due { Reason::Deadline } else { Reason::RanTooLong })
    }

    fn look_again(&self, now: Time) {
        let least = self.start + self.granted.class.bounds().min;
        let calm_until = self.due(now).min(self.granted.until(now).max(least));
        self.not_before.store(calm_until.as_nanos(), Ordering::Release);
    }

    fn becomes(&self, state: &mut State, next: State) {
        *state = next;
        self.not_before.store(NEVER.as_nanos(), Ordering::Release);
    }

    fn terminate(&self, state: &mut State, reason: Reason) {
        *state = State::Terminated { reason, is_told: false, is_over: false };
        self.not_before.store(0, Ordering::Release);
        self.granted.ended(self.start, Some(reason));
        #[cfg(feature = "sentry")]
        for sentry in &*self.sentries.lock() {
            sentry.stop(self.brought.request.as_ref(), reason);
        }
    }
}

fn this_thread() -> usize {
    RawThreadId::INIT.nonzero_thread_id().get()
}
