//! The token of one request, by which the handler learns whether the request has been terminated.
//!
//! States: a request is first `Running`. Then it may become `Settled` (its response has begun),
//! `Deferred` (its handler has cancelled the termination) or `Terminated`. Each state except
//! `Terminated` can be followed by `Ended`. When the client leaves, a running or settled request is
//! terminated, because nobody will read the response. A deferred request goes on. The state changes
//! under the token's lock.
//!
//! If a checkpoint in the handler itself has reported the termination (`is_told`), the handler
//! answers for itself. Otherwise the layer drops the handler. A checkpoint on another thread or
//! task that works for the request does not count as a report to the handler. Reading the state
//! does not count either.
//!
//! `not_before` makes a checkpoint cheap: before that moment no time can terminate the request, and
//! the checkpoint only compares the clock. This is safe because a threshold changes only at the end
//! of an interval and never falls below `run_min`. A timer must check the request again at that
//! moment.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use bywash_lease::RequestId;
use bywash_units::{Time, TimeSpan};
use http::HeaderMap;
use parking_lot::lock_api::GetThreadId;
use parking_lot::{Mutex, RawThreadId};

use crate::controller::{Granted, Handle};
use crate::request::Brought;
#[cfg(feature = "stop-client")]
use crate::stop_client::StopClient;
use crate::terminated::{Reason, Terminated};

/// The handle of one request, shared by everything that works for the request. Clones share the
/// same state.
#[derive(Clone, Debug)]
pub struct Token(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    granted: Arc<Granted>,
    brought: Brought,
    /// The stop clients that hold leases of this request. Each is notified when the request is
    /// over.
    #[cfg(feature = "stop-client")]
    stop_clients: Mutex<Vec<StopClient>>,
    start: Time,
    /// The deadline that the request brought, or the far future if it brought none.
    own: Time,
    /// The earliest time, in nanoseconds on the class's clock, at which the request can be overdue.
    not_before: AtomicU64,
    only_at_checkpoints: AtomicBool,
    /// The id of the thread that polls the handler now; 0 if none does. A thread compares this only
    /// with its own id, so relaxed ordering is enough.
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

impl Handle {
    /// Begins a request now and returns its token. `left` is the time that its caller allows;
    /// `None` means no deadline of the caller.
    pub fn begin(&self, left: Option<Duration>) -> Token {
        self.begin_with(left, Brought::default())
    }

    /// Begins a request that has also brought a name or trace fields, and returns its token.
    pub fn begin_with(&self, left: Option<Duration>, brought: Brought) -> Token {
        Token::new(self.0.clone(), left.map(TimeSpan::from), brought)
    }
}

impl Token {
    pub(crate) fn new(granted: Arc<Granted>, left: Option<TimeSpan>, brought: Brought) -> Self {
        let start = granted.begins();
        let life = Inner {
            granted,
            brought,
            #[cfg(feature = "stop-client")]
            stop_clients: Mutex::default(),
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

    /// Returns the name of the request's class.
    pub fn class(&self) -> &str {
        &self.0.granted.class.name
    }

    /// Returns the name by which gateway and stop daemon know the request, or `None` if it has no
    /// name.
    pub fn request(&self) -> Option<&RequestId> {
        self.0.brought.request.as_ref()
    }

    /// Returns the header fields for a call to another service: the request's name, its trace
    /// fields, and the time that is left to it.
    pub fn outgoing(&self) -> HeaderMap {
        self.0.brought.outgoing(self.left())
    }

    /// Returns the time at which the request will be terminated at the present threshold. The time
    /// is counted from the creation of the controller. Returns `None` if no time can terminate the
    /// request any more.
    pub fn deadline(&self) -> Option<Duration> {
        let now = self.0.granted.clock.now();
        match *self.0.state.lock() {
            State::Running | State::Terminated { .. } => {
                Some(self.0.due(now).since(Time::ZERO).to_std())
            }
            State::Settled | State::Deferred | State::Ended => None,
        }
    }

    /// Returns the time that is left to the request at the present threshold. Returns `None` if no
    /// time can terminate it any more.
    pub fn left(&self) -> Option<Duration> {
        let now = self.0.granted.clock.now();
        match *self.0.state.lock() {
            State::Running => Some(self.0.due(now).since(now).to_std()),
            State::Terminated { .. } => Some(Duration::ZERO),
            State::Settled | State::Deferred | State::Ended => None,
        }
    }

    /// Returns the longest time that can be left to the request if the load falls. Returns `None`
    /// if no time can terminate it any more.
    #[cfg(feature = "stop-client")]
    pub(crate) fn left_at_most(&self) -> Option<Duration> {
        let now = self.0.granted.clock.now();
        let longest = self.0.start + self.0.granted.class.bounds().max;
        match *self.0.state.lock() {
            State::Running => Some(longest.min(self.0.own).since(now).to_std()),
            State::Terminated { .. } => Some(Duration::ZERO),
            State::Settled | State::Deferred | State::Ended => None,
        }
    }

    /// Returns whether the request is terminated, or is overdue and will be terminated at its next
    /// checkpoint. The call does not change the request's state.
    pub fn is_terminated(&self) -> bool {
        let state = self.0.state.lock();
        matches!(*state, State::Terminated { .. }) || self.0.overdue(*state).is_some()
    }

    /// Returns the reason of the termination, or `None` if the request has not been terminated yet.
    /// This call does not terminate an overdue request: only a checkpoint, the layer or
    /// [`Token::look`] does.
    pub fn reason(&self) -> Option<Reason> {
        match *self.0.state.lock() {
            State::Terminated { reason, .. } => Some(reason),
            State::Running | State::Settled | State::Deferred | State::Ended => None,
        }
    }

    /// Terminates the request if it is overdue, and returns an error if the request is terminated.
    /// A handler calls this often, and stops at the first error.
    pub fn checkpoint(&self) -> Result<(), Terminated> {
        let now = self.0.granted.clock.now();
        if now.as_nanos() < self.0.not_before.load(Ordering::Acquire) {
            return Ok(());
        }
        self.look();
        self.tell()
    }

    /// Passes the last checkpoint: if it returns `Ok`, nothing terminates this request any more.
    /// Call it before a write, for example. If the client leaves afterwards, the layer lets the
    /// rest of the future run as a tokio task. Returns an error if the request is already
    /// terminated.
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

    /// Polls the handler by calling `step`. A checkpoint on this thread during the call counts as
    /// one in the handler.
    pub(crate) fn run<T>(&self, step: impl FnOnce() -> T) -> T {
        self.0.runs_on.store(this_thread(), Ordering::Relaxed);
        let done = step();
        self.0.runs_on.store(0, Ordering::Relaxed);
        done
    }

    /// Keeps the layer from dropping the request's future when the request is overdue or its client
    /// has left. From then on only the request's checkpoints can end it.
    pub fn only_at_checkpoints(&self) {
        self.0.only_at_checkpoints.store(true, Ordering::Relaxed);
    }

    /// Returns whether the layer lets the future go on when the client has left.
    pub(crate) fn outlives_its_client(&self) -> bool {
        self.is_only_at_checkpoints() || *self.0.state.lock() == State::Deferred
    }

    pub(crate) fn is_only_at_checkpoints(&self) -> bool {
        self.0.only_at_checkpoints.load(Ordering::Relaxed)
    }

    /// Terminates the request if it is overdue. Returns whether this call has terminated it.
    pub fn look(&self) -> bool {
        let mut state = self.0.state.lock();
        let reason = self.0.overdue(*state);
        if let Some(reason) = reason {
            self.0.terminate(&mut state, reason);
        }
        reason.is_some()
    }

    /// Returns whether the request is terminated and no checkpoint in its handler has reported
    /// that. It first terminates an overdue request.
    pub(crate) fn is_to_be_dropped(&self) -> bool {
        self.look();
        matches!(*self.0.state.lock(), State::Terminated { is_told: false, .. })
    }

    /// Returns whether the request is terminated and a checkpoint in its handler has reported that.
    pub(crate) fn is_told(&self) -> bool {
        matches!(*self.0.state.lock(), State::Terminated { is_told: true, .. })
    }

    /// Counts the request as lost, because admission control refuses it after its token was
    /// created.
    pub(crate) fn refused(&self) {
        self.0.granted.loses();
    }

    /// Records that the response has begun. From then on neither the threshold nor a deadline
    /// terminates the request.
    pub fn settle(&self) {
        let mut state = self.0.state.lock();
        if *state == State::Running {
            self.0.becomes(&mut state, State::Settled);
        }
    }

    /// Records that the client has left, which terminates a running or settled request. A gateway
    /// closes the connection a moment before the deadline here. So if a client leaves in the last
    /// tenth of its request's time, the request counts as ended by its deadline, unless its
    /// response has begun.
    pub fn leave(&self) {
        let Inner { start, own, granted, .. } = &*self.0;
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

    /// Records that all work for the request has ended. Further calls have no effect.
    pub fn end(&self) {
        let mut state = self.0.state.lock();
        match &mut *state {
            State::Running | State::Settled | State::Deferred => {
                self.0.becomes(&mut state, State::Ended);
                self.0.granted.ended(self.0.start, None);
                self.0.granted.ends();
            }
            // Keep the state `Terminated`: other threads that still work for the request must learn
            // of the termination.
            State::Terminated { is_over, .. } => {
                if !std::mem::replace(is_over, true) {
                    self.0.granted.ends();
                }
            }
            State::Ended => {}
        }
    }

    /// Returns the error that a checkpoint would return, or `None` if the request has not been
    /// terminated yet.
    pub fn terminated(&self) -> Option<Terminated> {
        self.reason().map(|reason| self.over(reason))
    }

    /// Creates the error of this request for a given reason. It does not change the state.
    fn over(&self, reason: Reason) -> Terminated {
        let class = &self.0.granted.class;
        Terminated { class: class.name.clone(), reason, retry_after: class.come_again() }
    }

    /// Returns whether connections may be leased for the request, and if so registers `stop_client`
    /// to be notified of the termination. Returns `false` if nothing can end the request any more,
    /// and an error if it is terminated.
    #[cfg(feature = "stop-client")]
    pub(crate) fn leases(&self, stop_client: &StopClient) -> Result<bool, Terminated> {
        self.checkpoint()?;
        // A termination changes the state under the same lock, so it cannot miss this stop client.
        let state = self.0.state.lock();
        match *state {
            State::Running | State::Settled => {
                let mut stop_clients = self.0.stop_clients.lock();
                if !stop_clients.contains(stop_client) {
                    stop_clients.push(stop_client.clone());
                }
                Ok(true)
            }
            State::Terminated { reason, .. } => Err(self.over(reason)),
            State::Deferred | State::Ended => Ok(false),
        }
    }

    /// Records that the stop daemon has stopped the request. Returns an error if the request is
    /// terminated, and `Ok` if nothing can end it any more.
    #[cfg(feature = "stop-client")]
    pub(crate) fn stopped(&self, reason: Reason) -> Result<(), Terminated> {
        {
            let mut state = self.0.state.lock();
            if matches!(*state, State::Running | State::Settled) {
                // The daemon does not need to be notified.
                self.0.stop_clients.lock().clear();
                self.0.terminate(&mut state, reason);
            }
        }
        self.tell()
    }

    /// Returns the time for which the request certainly cannot become overdue. Returns `None` if no
    /// time can terminate it any more.
    pub(crate) fn calm(&self) -> Option<Duration> {
        let calm_until = Time::from_nanos(self.0.not_before.load(Ordering::Acquire));
        let now = self.0.granted.clock.now();
        (calm_until != NEVER).then(|| calm_until.since(now).to_std())
    }
}

impl Inner {
    fn due(&self, now: Time) -> Time {
        (self.start + self.granted.may_run(now)).min(self.own)
    }

    /// Returns the reason for which a request in this state must be terminated now. Returns `None`
    /// if it is not overdue, or is not running any more.
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
        #[cfg(feature = "stop-client")]
        for stop_client in &*self.stop_clients.lock() {
            stop_client.stop(self.brought.request.as_ref(), reason);
        }
    }
}

fn this_thread() -> usize {
    RawThreadId::INIT.nonzero_thread_id().get()
}
