//! The engine behind one short lock, and the tickets that requests hold.
//!
//! The [`RequestTable`] is under one lock, which is held for one engine call (well under a
//! microsecond, measured by `lab/crates/benches`, `decision`). Two kinds of calls take longer. One
//! call in ten seconds computes what requests are worth (measured there as well). While a class
//! that can be stopped fills the queue, one call in a second brings its estimate up to date. The
//! lock is never held while a task is woken: wakers are called after it is released. The table of
//! sessions is copied in slices, one per hold of the lock (measured by `lab/crates/benches`,
//! `learned`). The times for which the lock is held and waited for are counted under it
//! (`lock.rs`).
//!
//! **A request that is only observed** runs at once, whatever the engine decides. If the engine
//! also had it start at once, its end is as good a measurement as any other. If not, the engine
//! forgets it without learning anything.

mod lock;
mod ticket;

use std::cmp::Reverse;
use std::sync::Arc;
use std::task::Waker;
use std::time::Instant;

use bywash_engine::RuleId;
use bywash_engine::queue::Scheduler;
use bywash_engine::throttle::Rule;
use bywash_engine::{
    AnswerKind, Class, ClassId, ClassSet, Counts, Cursor, Decision, Engine, Event, Evictions,
    Learning, MeanService, Meter, Options, Reading, Remembered, Request, RequestTable, Service,
    SessionKey, Slice, Status, Wakers,
};
use bywash_units::{Time, TimeSpan, Utility};

pub(crate) use self::lock::LockTimes;
use self::lock::Locked;
use self::ticket::Claimed;
pub(crate) use self::ticket::Ticket;
use crate::process::sync::Mutex;

/// The number of sessions that are copied during one hold of the lock.
const SLICE: usize = 2048;

/// The engine in real time.
pub(crate) struct Driver {
    started: Instant,
    core: Mutex<Core>,
}

struct Core {
    requests: RequestTable,
    times: LockTimes,
}

/// The knowledge that an engine has learned.
pub(crate) struct Knowledge {
    pub(crate) sessions: Vec<Remembered>,
    pub(crate) pace: MeanService,
    /// The counts by class, and the values that were published from them.
    pub(crate) counts: Vec<(Counts, Option<[f64; 2]>)>,
    /// A number that identifies the kinds of signals, and for each combination of signals its
    /// counts and published value.
    pub(crate) signals: (u64, Vec<[f64; 3]>),
}

/// The progress of a session by an answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Progress {
    pub(crate) session: SessionKey,
    pub(crate) answer: AnswerKind,
    /// The revenue of the answer.
    pub(crate) revenue: Utility,
    /// Whether the answer meets the conditions of success of its class.
    pub(crate) succeeded: bool,
    /// Whether the answer came within the patience of its class.
    pub(crate) in_time: bool,
}

impl Driver {
    pub(crate) fn new(engine: Engine) -> Self {
        let core = Core { requests: RequestTable::new(engine), times: LockTimes::default() };
        Self { started: Instant::now(), core: Mutex::new(core) }
    }

    /// The time on the engine's clock.
    pub(crate) fn now(&self) -> Time {
        Time::ZERO + TimeSpan::from(self.started.elapsed())
    }

    /// Hands a request to the engine. `obeyed` says whether the decision is carried out; otherwise
    /// the request is only observed.
    pub(crate) fn arrive(self: &Arc<Self>, request: Request, obeyed: bool) -> Ticket {
        let (id, standing, at_once) = self.with(|requests, now, wakers| {
            let id = requests.arrive(now, request, wakers);
            let at_once = matches!(requests.decision(id), Decision::Granted { .. });
            (id, requests.engine.standing_of(id), at_once)
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
            departure: None,
        }
    }

    /// Hands the engine a measurement of the machine.
    pub(crate) fn read(&self, reading: Reading) {
        self.with(|requests, now, wakers| requests.apply(now, Event::Read(reading), wakers));
    }

    /// Returns the reading that the policy wants, and the time that it covers.
    pub(crate) fn meter(&self) -> Option<(Meter, TimeSpan)> {
        self.lock().engine.meter()
    }

    /// Returns whether a request that arrived now would get a slot at once.
    pub(crate) fn has_free_slot(&self) -> bool {
        self.lock().engine.has_free_slot()
    }

    /// Lets the engine do the work that is due. Returns the time of the next call.
    pub(crate) fn on_timer(&self) -> Option<Time> {
        self.with(RequestTable::on_timer)
    }

    /// Sets whether requests may be stopped while they run. `beside` runs under the same hold of
    /// the lock.
    pub(crate) fn may_stop(&self, may: bool, beside: impl FnOnce()) {
        let mut requests = self.lock();
        requests.engine.may_stop(may);
        beside();
    }

    /// Puts a new configuration in force, see [`Engine::reconfigure`]. `scheduler` gets the
    /// engine's present classes and returns a new scheduler if it has to change.
    pub(crate) fn reconfigure(
        &self,
        classes: Vec<Class>,
        scheduler: impl FnOnce(&[Class]) -> Option<Box<dyn Scheduler>>,
        options: Options,
    ) {
        self.with(|requests, now, wakers| {
            requests.carry_out(now, wakers, |engine, actions| {
                let scheduler = scheduler(engine.classes());
                engine.reconfigure(now, classes, scheduler, options, actions);
            });
        });
    }

    /// Puts these rules in force, and no others.
    pub(crate) fn throttle(&self, rules: &[(RuleId, Rule)]) {
        self.with(|requests, now, wakers| {
            requests.carry_out(now, wakers, |engine, actions| engine.throttle(now, rules, actions));
        });
    }

    /// Returns how many requests wait and run under each rule.
    pub(crate) fn throttled(&self) -> Vec<(RuleId, u32, u32)> {
        self.lock().engine.throttled().collect()
    }

    /// The instant at which the engine's clock began.
    pub(crate) const fn started(&self) -> Instant {
        self.started
    }

    /// Returns what the engine has learned about sessions, service times and transitions between
    /// classes.
    pub(crate) fn learned(&self) -> Knowledge {
        let sessions = self.sessions();
        let requests = self.lock();
        let engine = &requests.engine;
        let learning = engine.learning();
        let counts = (0..engine.classes().len()).map(|class| learning.counts(ClassId(class as u8)));
        let (counts, signals) = (counts.collect(), learning.signal_counts());
        Knowledge { sessions, pace: engine.mean_service(), counts, signals }
    }

    /// Returns the remembered sessions, the one served longest ago first. They are copied in
    /// slices: other threads get the lock between two slices, and no memory is allocated under it.
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

    /// Returns what the engine has learned about the worth of requests, and the classes that it is
    /// about. It is a copy, for computations outside the lock.
    pub(crate) fn learning(&self) -> (Learning, Vec<Class>) {
        let requests = self.lock();
        (requests.engine.learning().clone(), requests.engine.classes().to_vec())
    }

    /// Restores what an earlier process had learned; `counts` are by class. Returns how many
    /// sessions are remembered now.
    pub(crate) fn restore(&self, known: Knowledge) -> usize {
        let Knowledge { sessions, pace, counts, signals } = known;
        let mut requests = self.lock();
        let now = self.now();
        requests.engine.restore_mean_service(pace);
        for (class, (counts, published)) in counts.iter().enumerate() {
            requests.engine.restore_counts(ClassId(class as u8), counts, *published);
        }
        requests.engine.restore_signals(signals.0, &signals.1);
        let sessions = sessions.into_iter();
        sessions.filter(|session| requests.engine.restore_session(now, *session)).count()
    }

    /// Returns whether an answer advances a session, or begins one.
    pub(crate) fn gets_on(&self, session: Option<SessionKey>, service: &Service) -> bool {
        self.lock().engine.gets_on(self.now(), session, service)
    }

    /// Returns the classes that a session was served, as far as they are remembered.
    pub(crate) fn path(&self, session: SessionKey) -> ClassSet {
        self.lock().engine.path(self.now(), session)
    }

    /// Returns how many sessions are proven, and how many were evicted.
    pub(crate) fn session_counts(&self) -> (u32, Evictions) {
        let requests = self.lock();
        (requests.engine.proven_sessions(), requests.engine.evictions())
    }

    pub(crate) fn status(&self) -> Status {
        self.lock().engine.status(self.now())
    }

    /// Returns how long a request of each class may run under the present load.
    pub(crate) fn may_run_by_class(&self) -> Vec<Option<TimeSpan>> {
        let requests = self.lock();
        let classes = requests.engine.classes().len();
        (0..classes).map(|class| requests.engine.may_run_of(ClassId(class as u8))).collect()
    }

    /// Returns how many requests of each class wait.
    pub(crate) fn waiting_by_class(&self) -> Vec<u32> {
        let requests = self.lock();
        let classes = requests.engine.classes().len();
        (0..classes).map(|class| requests.engine.waiting_of(ClassId(class as u8))).collect()
    }

    /// Returns the times for which the lock was held and waited for.
    pub(crate) fn lock_times(&self) -> LockTimes {
        self.lock().core.times.clone()
    }

    fn lock(&self) -> Locked<'_> {
        if let Ok(core) = self.core.try_lock() {
            return Locked::new(core);
        }
        self.lock_of_others()
    }

    /// Takes the lock when another thread holds it, or has panicked while it did.
    #[cold]
    fn lock_of_others(&self) -> Locked<'_> {
        let began = Instant::now();
        let mut core = self.core.lock().unwrap_or_else(|_| has_panicked());
        core.times.waited.count(began.elapsed());
        Locked::new(core)
    }

    fn with<R>(&self, act: impl FnOnce(&mut RequestTable, Time, &mut Wakers) -> R) -> R {
        let mut wakers = Wakers::new();
        let result = act(&mut self.lock(), self.now(), &mut wakers);
        wakers.into_iter().for_each(Waker::wake);
        result
    }
}

/// Aborts the process. The engine's tables may be half changed, and going on would hand out slots
/// that are never given back. A restart is the quickest way to serve again.
fn has_panicked() -> ! {
    bywash_terminal::stderr::say("the engine has panicked; this is a fault in bywash. Aborting.");
    std::process::abort()
}

#[cfg(all(test, shuttle))]
mod schedules;

#[cfg(test)]
pub(crate) mod tests;
