//! The engine behind one short lock, and the tickets that requests hold.
//!
//! States of a seat (one for each request number): `Free` (the number may be given), `Waiting`
//! (the engine has it in its queue; `waker` is whoever polls the ticket), `Granted` (it holds a
//! slot; `waker` is whoever waits to be stopped), `Shed` (refused) and `Stopped` (while it ran; of
//! both the engine has forgotten the number, the ticket not yet). Only the ticket of a seat frees it.
//!
//! Everything is under one lock, held for one engine call (well under a microsecond, but for the one in ten
//! seconds that computes what requests are worth; both are measured by `benches`, `decision`; and, while a
//! class that can be stopped fills the queue, for one in a second that brings its estimate up to date) and
//! never while waking somebody: wakers are taken out and called after it. The table of
//! sessions is copied in slices, one under each hold of the lock (measured by `benches`, `learned`).
//! How long it is held and waited for is counted under it (`lock.rs`).
//!
//! **What was only observed** runs at once, whatever the engine says. If that was the same the
//! other way round (the engine had it start at once as well) its end tells as much as any; if
//! not, the engine forgets it without learning anything.

mod lock;
mod ticket;

use std::cmp::Reverse;
use std::sync::Arc;
use std::task::Waker;
use std::time::Instant;

use bywash_engine::queue::Order;
use bywash_engine::throttle::{Rule, RuleId};
use bywash_engine::{
    Action, AnswerKind, Class, ClassId, ClassSet, Counts, Cursor, Engine, Event, Evictions,
    Learning, Meter, Options, Pace, Reading, Reason, Remembered, Request, RequestId, Service,
    SessionKey, Slice, Status,
};
use bywash_units::{Span, Time, Utility};

pub(crate) use self::lock::LockTimes;
use self::lock::Locked;
use self::ticket::Claimed;
pub(crate) use self::ticket::Ticket;
use crate::sync::Mutex;

/// Sessions that are copied while the lock is held once.
const SLICE: usize = 2048;

/// The engine in real time.
pub(crate) struct Driver {
    started: Instant,
    core: Mutex<Core>,
}

struct Core {
    engine: Engine,
    seats: Vec<Seat>,
    free: Vec<u32>,
    /// Reused from call to call.
    actions: Vec<Action>,
    times: LockTimes,
}

enum Seat {
    Free,
    Waiting(Option<Waker>),
    Granted { reason: Reason, at: Time, waker: Option<Waker> },
    Shed(Refusal),
    Stopped(Refusal),
}

/// The engine's answer to a request that does not get a slot, or does not keep it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Refusal {
    pub(crate) reason: Reason,
    pub(crate) retry_after: Span,
    pub(crate) at: Time,
}

/// What an engine has learned.
pub(crate) struct Knowledge {
    pub(crate) sessions: Vec<Remembered>,
    pub(crate) pace: Pace,
    /// By class: what was counted, and what was published.
    pub(crate) counts: Vec<(Counts, Option<[f64; 2]>)>,
    /// What the kinds of signals are, and of each combination what was counted and published.
    pub(crate) signals: (u64, Vec<[f64; 3]>),
}

/// What the engine has decided about a request so far.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Decision {
    Waits,
    Granted {
        reason: Reason,
        at: Time,
    },
    Refused(Refusal),
    /// It ran, and was stopped.
    Stopped(Refusal),
}

/// A session has got on by an answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Progress {
    pub(crate) session: SessionKey,
    pub(crate) answer: AnswerKind,
    /// What the answer brought.
    pub(crate) earned: Utility,
    /// Whether it came within the patience of its class.
    pub(crate) in_time: bool,
}

/// Who was woken for: called when the lock has been released.
type Wakers = Vec<Waker>;

impl Driver {
    pub(crate) fn new(engine: Engine) -> Self {
        let core = Core {
            engine,
            seats: Vec::new(),
            free: Vec::new(),
            actions: Vec::new(),
            times: LockTimes::default(),
        };
        Self { started: Instant::now(), core: Mutex::new(core) }
    }

    /// The time on the engine's clock.
    pub(crate) fn now(&self) -> Time {
        Time::ZERO + Span::from(self.started.elapsed())
    }

    /// A request has arrived; `obeyed`: it does what is decided, rather than being observed.
    pub(crate) fn arrive(self: &Arc<Self>, request: Request, obeyed: bool) -> Ticket {
        let (id, standing, at_once) = self.with(|core, now, wakers| {
            let id = core.take_seat();
            core.tell(now, Event::Arrived { id, request }, wakers);
            let at_once = matches!(core.decision(id), Decision::Granted { .. });
            (id, core.engine.standing_of(id), at_once)
        });
        let driver = Arc::clone(self);
        let Request { class, session, address, signals, proven, .. } = request;
        let claimed = Claimed { class, session, address, signals, had_begun: !proven.is_empty() };
        Ticket {
            driver,
            id,
            standing,
            claimed,
            measured: obeyed || at_once,
            done: false,
            departed: false,
        }
    }

    /// A measurement of the machine.
    pub(crate) fn read(&self, reading: Reading) {
        self.with(|core, now, wakers| core.tell(now, Event::Read(reading), wakers));
    }

    /// Which reading is wanted, and over which time.
    pub(crate) fn meter(&self) -> Option<(Meter, Span)> {
        self.lock().engine.meter()
    }

    /// Whether a request that came now would get a slot at once.
    pub(crate) fn has_free_slot(&self) -> bool {
        self.lock().engine.has_free_slot()
    }

    /// Lets the engine do what is due, and says when it is next to be called.
    pub(crate) fn on_timer(&self) -> Option<Time> {
        self.with(|core, now, wakers| {
            let mut actions = std::mem::take(&mut core.actions);
            core.engine.on_timer(now, &mut actions);
            core.carry_out(now, actions, wakers);
            core.engine.next_timer()
        })
    }

    /// Whether requests may be stopped while they run; `beside` is done in the same moment.
    pub(crate) fn may_stop(&self, may: bool, beside: impl FnOnce()) {
        let mut core = self.lock();
        core.engine.may_stop(may);
        beside();
    }

    /// A new configuration, see [`Engine::reconfigure`]. `order` makes the new one, if it differs
    /// from the one for the classes that there are.
    pub(crate) fn reconfigure(
        &self,
        classes: Vec<Class>,
        order: impl FnOnce(&[Class]) -> Option<Box<dyn Order>>,
        options: Options,
    ) {
        self.with(|core, now, wakers| {
            let order = order(core.engine.classes());
            let mut actions = std::mem::take(&mut core.actions);
            core.engine.reconfigure(now, classes, order, options, &mut actions);
            core.carry_out(now, actions, wakers);
        });
    }

    /// From now on these rules hold, and no others.
    pub(crate) fn throttle(&self, rules: &[(RuleId, Rule)]) {
        self.with(|core, now, wakers| {
            let mut actions = std::mem::take(&mut core.actions);
            core.engine.throttle(now, rules, &mut actions);
            core.carry_out(now, actions, wakers);
        });
    }

    /// How many wait and run under each rule.
    pub(crate) fn throttled(&self) -> Vec<(RuleId, u32, u32)> {
        self.lock().engine.throttled().collect()
    }

    /// The beginning of its clock.
    pub(crate) const fn started(&self) -> Instant {
        self.started
    }

    /// What it has learned of sessions, of how long requests take and of what follows what.
    pub(crate) fn learned(&self) -> Knowledge {
        let sessions = self.sessions();
        let core = self.lock();
        let engine = &core.engine;
        let learning = engine.learning();
        let counts = (0..engine.classes().len()).map(|class| learning.counts(ClassId(class as u8)));
        let (counts, signals) = (counts.collect(), learning.signal_counts());
        Knowledge { sessions, pace: engine.pace(), counts, signals }
    }

    /// The sessions that are remembered, the one served longest ago first. They are copied in slices: between two of
    /// them others have the lock, and no memory is asked for under it.
    fn sessions(&self) -> Vec<Remembered> {
        let (now, mut cursor) = (self.now(), Cursor::default());
        let (mut all, mut slice) = (Vec::new(), Vec::with_capacity(SLICE));
        loop {
            let copied = self.lock().engine.copy_sessions(now, &mut cursor, SLICE, &mut slice);
            all.append(&mut slice);
            match copied {
                Slice::More => {}
                Slice::Last => break,
                Slice::Restarted => all.clear(),
            }
        }
        all.sort_unstable_by_key(|session| Reverse(session.age));
        all
    }

    /// What it has learned of what requests are worth, and the classes that it is about: a copy, to
    /// be computed with outside the lock.
    pub(crate) fn learning(&self) -> (Learning, Vec<Class>) {
        let core = self.lock();
        (core.engine.learning().clone(), core.engine.classes().to_vec())
    }

    /// What a process before this one had learned; `counts` are by class. Says how many sessions
    /// are remembered now.
    pub(crate) fn restore(&self, known: Knowledge) -> usize {
        let Knowledge { sessions, pace, counts, signals } = known;
        let mut core = self.lock();
        let now = self.now();
        core.engine.restore_pace(pace);
        for (class, (counts, published)) in counts.iter().enumerate() {
            core.engine.restore_counts(ClassId(class as u8), counts, *published);
        }
        core.engine.restore_signals(signals.0, &signals.1);
        let sessions = sessions.into_iter();
        sessions.filter(|session| core.engine.restore_session(now, *session)).count()
    }

    /// Whether a session gets on by an answer, or begins with it.
    pub(crate) fn gets_on(&self, session: Option<SessionKey>, service: &Service) -> bool {
        self.lock().engine.gets_on(self.now(), session, service)
    }

    /// What a session was served, as far as it is remembered.
    pub(crate) fn path(&self, session: SessionKey) -> ClassSet {
        self.lock().engine.path(self.now(), session)
    }

    /// How many sessions are proven, and how many made room for others.
    pub(crate) fn session_counts(&self) -> (u32, Evictions) {
        let core = self.lock();
        (core.engine.proven_sessions(), core.engine.evictions())
    }

    pub(crate) fn status(&self) -> Status {
        self.lock().engine.status(self.now())
    }

    /// How long a request of each class may run, as things are.
    pub(crate) fn may_run_by_class(&self) -> Vec<Option<Span>> {
        let core = self.lock();
        let classes = core.engine.classes().len();
        (0..classes).map(|class| core.engine.may_run_of(ClassId(class as u8))).collect()
    }

    /// How many of each class wait.
    pub(crate) fn waiting_by_class(&self) -> Vec<u32> {
        let core = self.lock();
        let classes = core.engine.classes().len();
        (0..classes).map(|class| core.engine.waiting_of(ClassId(class as u8))).collect()
    }

    /// How long the lock was held and waited for.
    pub(crate) fn lock_times(&self) -> LockTimes {
        self.lock().times.clone()
    }

    fn lock(&self) -> Locked<'_> {
        if let Ok(core) = self.core.try_lock() {
            return Locked::new(core);
        }
        self.lock_of_others()
    }

    /// Another thread has it, or has panicked while it had.
    #[cold]
    fn lock_of_others(&self) -> Locked<'_> {
        let began = Instant::now();
        let mut core = self.core.lock().unwrap_or_else(|_| has_panicked());
        core.times.waited.count(began.elapsed());
        Locked::new(core)
    }

    fn with<R>(&self, act: impl FnOnce(&mut Core, Time, &mut Wakers) -> R) -> R {
        let mut wakers = Wakers::new();
        let result = {
            let mut core = self.lock();
            act(&mut core, self.now(), &mut wakers)
        };
        wakers.into_iter().for_each(Waker::wake);
        result
    }
}

/// Its tables may be half changed, and going on would hand out slots that nobody gives back: starting anew is the
/// quickest way to serve again.
fn has_panicked() -> ! {
    crate::talk::say("the engine has panicked; this is a fault in bywash. Aborting.");
    std::process::abort()
}

impl Core {
    fn take_seat(&mut self) -> RequestId {
        let number = self.free.pop().unwrap_or_else(|| {
            self.seats.push(Seat::Free);
            self.seats.len() as u32 - 1
        });
        self.seats[number as usize] = Seat::Waiting(None);
        RequestId(number)
    }

    fn tell(&mut self, now: Time, event: Event, wakers: &mut Wakers) {
        let mut actions = std::mem::take(&mut self.actions);
        self.engine.on_event(now, event, &mut actions);
        self.carry_out(now, actions, wakers);
    }

    fn carry_out(&mut self, at: Time, mut actions: Vec<Action>, wakers: &mut Wakers) {
        for action in actions.drain(..) {
            let (id, seat) = match action {
                Action::Dispatch { id, reason } => (id, Seat::Granted { reason, at, waker: None }),
                Action::Shed { id, reason, retry_after } => {
                    (id, Seat::Shed(Refusal { reason, retry_after, at }))
                }
                Action::Terminate { id, reason, retry_after } => {
                    (id, Seat::Stopped(Refusal { reason, retry_after, at }))
                }
                // Only ever the answer to a ticket that was dropped, whose request is gone.
                Action::Cancel { .. } => continue,
            };
            let before = std::mem::replace(&mut self.seats[id.0 as usize], seat);
            if let Seat::Waiting(waker) | Seat::Granted { waker, .. } = before {
                wakers.extend(waker);
            }
        }
        self.actions = actions;
    }

    fn decision(&self, id: RequestId) -> Decision {
        match &self.seats[id.0 as usize] {
            Seat::Waiting(_) | Seat::Free => Decision::Waits,
            Seat::Granted { reason, at, .. } => Decision::Granted { reason: *reason, at: *at },
            Seat::Shed(refusal) => Decision::Refused(*refusal),
            Seat::Stopped(refusal) => Decision::Stopped(*refusal),
        }
    }

    /// The request is over, and this is how.
    fn leave(&mut self, now: Time, id: RequestId, how: Event, wakers: &mut Wakers) {
        let seat = std::mem::replace(&mut self.seats[id.0 as usize], Seat::Free);
        if matches!(seat, Seat::Waiting(_) | Seat::Granted { .. }) {
            self.tell(now, how, wakers);
        }
        self.free.push(id.0);
    }
}

#[cfg(all(test, shuttle))]
mod schedules;

#[cfg(test)]
pub(crate) mod tests;
