//! The engine behind one lock, which is held only for short times, and the tickets of requests.
//!
//! The [`RequestTable`] is under one lock, which is held for one engine call (well under a
//! microsecond, measured by `lab/crates/benches`, `decision`). Two kinds of calls take longer:
//! - One call in ten seconds computes what requests are worth (measured there as well).
//! - While a class that can be stopped fills the queue, one call in a second brings the estimate
//!   for that class up to date.
//!
//! Wakers are called only after the lock is released. The table of sessions is copied in slices,
//! one per hold of the lock (measured by `lab/crates/benches`, `learned`). The lock itself protects
//! the counts of how long it is held and waited for (`lock.rs`).
//!
//! **A request that is only observed** runs at once, whatever the engine decides. If the engine
//! gave it a slot on arrival, its end is as good a measurement as that of any other request. If
//! not, the engine forgets the request without learning anything from it.

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
    Learning, MeanService, Meter, Options, Population, PopulationKey, Reading, Remembered,
    RememberedPopulations, Request, RequestId, RequestTable, Service, SessionKey, Slice, Standing,
    Status, Wakers,
};
use bywash_fleet::Holding;
use bywash_units::{Time, TimeSpan, Utility};

pub(crate) use self::lock::LockTimes;
use self::lock::{Locked, is_over};
use self::ticket::Claimed;
pub(crate) use self::ticket::{LastDecision, Ticket};
use crate::process::sync::Mutex;

/// The maximum number of sessions that are copied during one hold of the lock.
const SLICE: usize = 2048;

/// Runs the engine on the process's clock, and lets the tasks of requests wait for its decisions.
pub(crate) struct Driver {
    started: Instant,
    core: Mutex<Core>,
}

struct Core {
    requests: RequestTable,
    /// The end of the slots that the fleet leases, and the number of slots from then on; `None` if
    /// they do not end by themselves.
    lease_end: Option<(Time, u32)>,
    times: LockTimes,
}

/// The knowledge that an engine has learned.
pub(crate) struct Knowledge {
    pub(crate) sessions: Vec<Remembered>,
    pub(crate) mean_service: MeanService,
    pub(crate) counts: Counted,
    /// The populations of clients.
    pub(crate) populations: RememberedPopulations,
}

/// The counts of one class, and its published indices, if any. An index is a worth per second of
/// service. The first index is for later visits, the second for first visits.
pub(crate) type ClassCounts = (Counts, Option<[f64; 2]>);

/// The counts that the engine has learned.
pub(crate) struct Counted {
    /// The counts of visits and revenue, by class number.
    pub(crate) classes: Vec<ClassCounts>,
    /// A number that identifies the kinds of signals, and three numbers for each combination of
    /// signals: the sessions that began with it, those of them that ordered, and the published
    /// factor.
    pub(crate) signals: (u64, Vec<[f64; 3]>),
}

/// The progress that a session makes by an answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Progress {
    pub(crate) session: SessionKey,
    pub(crate) answer: AnswerKind,
    /// The revenue that the answer brought; zero for most answers.
    pub(crate) revenue: Utility,
    /// Whether the answer meets its class's conditions of success.
    pub(crate) succeeded: bool,
    /// Whether the answer came within the patience of its class (the time that a user waits for
    /// it).
    pub(crate) in_time: bool,
}

/// The engine's first answer to a request.
struct Arrived {
    id: RequestId,
    standing: Standing,
    population: Option<(PopulationKey, usize)>,
    /// The decision, if the request got a slot.
    at_once: Option<Decision>,
}

impl Arrived {
    fn new(requests: &mut RequestTable, now: Time, request: Request, wakers: &mut Wakers) -> Self {
        let id = requests.arrive(now, request, wakers);
        let decision = requests.decision(id);
        let at_once = matches!(decision, Decision::Granted { .. }).then_some(decision);
        let engine = &requests.engine;
        let (standing, population) = (engine.standing_of(id), engine.population_of(id));
        Self { id, standing, population, at_once }
    }
}

impl Driver {
    pub(crate) fn new(engine: Engine) -> Self {
        let requests = RequestTable::new(engine);
        let core = Core { requests, lease_end: None, times: LockTimes::default() };
        Self { started: Instant::now(), core: Mutex::new(core) }
    }

    /// Returns the present time on the engine's clock, which starts at zero with the driver.
    pub(crate) fn now(&self) -> Time {
        Time::ZERO + TimeSpan::from(self.started.elapsed())
    }

    /// Hands a new request to the engine and returns its ticket. If `obeyed` is false, the request
    /// is only observed: it runs whatever the engine decides.
    ///
    /// `identify` sets the population and the target of the request. It is called, without the
    /// lock, only if the request ranks by them.
    pub(crate) fn arrive(
        self: &Arc<Self>,
        mut request: Request,
        obeyed: bool,
        identify: impl FnOnce(&mut Request),
    ) -> Ticket {
        let arrived = self.with(|requests, now, wakers| {
            let needs_population = requests.engine.needs_population(now, &request);
            (!needs_population).then(|| Arrived::new(requests, now, request, wakers))
        });
        let arrived = arrived.unwrap_or_else(|| {
            identify(&mut request);
            self.with(|requests, now, wakers| Arrived::new(requests, now, request, wakers))
        });
        let Arrived { id, standing, population, at_once } = arrived;
        let driver = Arc::clone(self);
        let Request { class, session, address, signals, proven, .. } = request;
        let had_begun = !proven.is_empty();
        let claimed = Claimed { class, session, address, signals, had_begun };
        Ticket {
            driver,
            id,
            standing,
            population,
            claimed,
            at_once,
            measured: obeyed || at_once.is_some(),
            done: false,
            departure: None,
            last: (!obeyed).then(Arc::default),
        }
    }

    /// Hands the engine a measurement of the machine, such as its processor use.
    pub(crate) fn read(&self, reading: Reading) {
        self.with(|requests, now, wakers| requests.apply(now, Event::Read(reading), wakers));
    }

    /// Returns the kind of measurement that the scheduler needs, and the time to average it over.
    /// Returns `None` if the scheduler needs none.
    pub(crate) fn meter(&self) -> Option<(Meter, TimeSpan)> {
        self.lock().engine.meter()
    }

    /// Sets the slots that the fleet leases to this gateway. No request gets a slot beyond them,
    /// also if this thread or the machine stops for a while.
    pub(crate) fn hold(&self, holding: Holding) {
        let mut wakers = Wakers::new();
        let mut requests = self.lock();
        let lease_end = holding.until.map(|until| (until, holding.then));
        let now = self.now();
        // The lease may have ended while this thread waited for the lock.
        let slots = if is_over(lease_end) { holding.then } else { holding.slots };
        requests.core.lease_end = lease_end;
        requests.carry_out(now, &mut wakers, |engine, actions| {
            engine.set_slot_lease(now, Some(slots), actions);
        });
        drop(requests);
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Returns the work that clients offer.
    #[cfg(feature = "fleet")]
    pub(crate) fn offered(&self) -> bywash_engine::Offered {
        self.lock().engine.offered()
    }

    /// Returns the number of requests that hold a slot.
    #[cfg(feature = "fleet")]
    pub(crate) fn running(&self) -> u32 {
        self.with(|requests, _, _| requests.engine.running())
    }

    /// Returns whether a request that arrived now would get a slot at once.
    pub(crate) fn has_free_slot(&self) -> bool {
        self.lock().engine.has_free_slot()
    }

    /// Lets the engine do the work that is due. Returns the time at which to call this again, or
    /// `None` if nothing will become due.
    pub(crate) fn on_timer(&self) -> Option<Time> {
        self.with(RequestTable::on_timer)
    }

    /// Sets whether requests may be stopped while they run. Calls `beside` under the same hold of
    /// the lock, so that no thread sees only one of the two changes.
    pub(crate) fn may_stop(&self, may: bool, beside: impl FnOnce()) {
        let mut requests = self.lock();
        requests.engine.may_stop(may);
        beside();
    }

    /// Puts a new configuration in force; see [`Engine::reconfigure`]. `scheduler` gets the
    /// engine's present classes. It returns the new scheduler, or `None` to keep the present one.
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

    /// Puts these rules for elephants in force, in place of all earlier ones.
    pub(crate) fn throttle(&self, rules: &[(RuleId, Rule)]) {
        self.with(|requests, now, wakers| {
            requests.carry_out(now, wakers, |engine, actions| engine.throttle(now, rules, actions));
        });
    }

    /// Returns the number of waiting and of running requests under each rule, in this order.
    pub(crate) fn throttled(&self) -> Vec<(RuleId, u32, u32)> {
        self.lock().engine.throttled().collect()
    }

    /// Returns the instant at which the engine's clock was zero.
    pub(crate) const fn started(&self) -> Instant {
        self.started
    }

    /// Returns a copy of what the engine has learned about sessions, service times and transitions
    /// between classes. The lock is taken several times for that.
    pub(crate) fn learned(&self) -> Knowledge {
        let sessions = self.sessions();
        let mean_service = self.lock().engine.mean_service();
        let counts = self.counted();
        let populations = self.lock().engine.remembered_populations();
        Knowledge { sessions, mean_service, counts, populations }
    }

    /// Returns the counts of this gateway's own requests.
    pub(crate) fn counted(&self) -> Counted {
        let requests = self.lock();
        let (learning, classes) = (requests.engine.learning(), requests.engine.classes().len());
        let counts = (0..classes).map(|class| learning.counts(ClassId(class as u8)));
        Counted { classes: counts.collect(), signals: learning.signal_counts() }
    }

    /// Replaces the counts of the other gateways of the fleet.
    #[cfg(feature = "fleet")]
    pub(crate) fn set_other_counts(&self, others: bywash_engine::OtherCounts) {
        self.lock().engine.set_other_counts(others);
    }

    /// Returns the remembered sessions, the one served longest ago first. They are copied in
    /// slices, so that other threads get the lock between two slices. No memory is allocated while
    /// the lock is held.
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

    /// Returns a copy of what the engine has learned about the worth of requests, with its present
    /// classes, for computations outside the lock.
    pub(crate) fn learning(&self) -> (Learning, Vec<Class>) {
        let requests = self.lock();
        (requests.engine.learning().clone(), requests.engine.classes().to_vec())
    }

    /// Restores what an earlier process had learned. The counts and the sessions' classes must be
    /// numbered as the present classes are. Returns the number of sessions that were restored. The
    /// engine skips those that are too old, or that it has served already.
    pub(crate) fn restore(&self, known: Knowledge) -> usize {
        let Knowledge { sessions, mean_service, counts, populations } = known;
        let Counted { classes, signals } = counts;
        let mut requests = self.lock();
        let now = self.now();
        requests.engine.restore_mean_service(mean_service);
        for (class, (counts, published)) in classes.iter().enumerate() {
            requests.engine.restore_counts(ClassId(class as u8), counts, *published);
        }
        requests.engine.restore_signals(signals.0, &signals.1);
        requests.engine.restore_populations(&populations);
        let sessions = sessions.into_iter();
        sessions.filter(|session| requests.engine.restore_session(now, *session)).count()
    }

    /// Returns whether an answer advances a session or begins one. `session` is the request's own;
    /// `None` if it has none.
    pub(crate) fn advances_session(&self, session: Option<SessionKey>, service: &Service) -> bool {
        self.lock().engine.begins_or_advances(self.now(), session, service)
    }

    /// Returns the classes that a session was served; empty if the engine does not remember it.
    pub(crate) fn path(&self, session: SessionKey) -> ClassSet {
        self.lock().engine.path(self.now(), session)
    }

    /// Returns what is known about the populations of clients. The first one is that of all clients
    /// that are not told apart.
    pub(crate) fn populations(&self) -> Vec<Population> {
        self.lock().engine.populations().to_vec()
    }

    /// Sets the levels of these populations, in place of those that follow from their lifts.
    pub(crate) fn rank_populations(&self, ranked: Vec<(PopulationKey, usize)>) {
        self.lock().engine.rank_populations(ranked);
    }

    /// Returns the number of remembered sessions that are proven, and the numbers of sessions
    /// evicted since the start.
    pub(crate) fn session_counts(&self) -> (u32, Evictions) {
        let requests = self.lock();
        (requests.engine.proven_sessions(), requests.engine.evictions())
    }

    pub(crate) fn status(&self) -> Status {
        self.lock().engine.status(self.now())
    }

    /// Returns how long a request may run under the present load, by class number; `None` for a
    /// class whose requests are never stopped.
    pub(crate) fn may_run_by_class(&self) -> Vec<Option<TimeSpan>> {
        let requests = self.lock();
        let classes = requests.engine.classes().len();
        (0..classes).map(|class| requests.engine.may_run_of(ClassId(class as u8))).collect()
    }

    /// Returns the number of waiting requests, by class number.
    pub(crate) fn waiting_by_class(&self) -> Vec<u32> {
        let requests = self.lock();
        let classes = requests.engine.classes().len();
        (0..classes).map(|class| requests.engine.waiting_of(ClassId(class as u8))).collect()
    }

    /// Returns how long the lock was held and waited for since the start.
    pub(crate) fn lock_times(&self) -> LockTimes {
        self.lock().core.times.clone()
    }

    fn lock(&self) -> Locked<'_> {
        if let Ok(core) = self.core.try_lock() {
            return Locked::new(core);
        }
        self.lock_of_others()
    }

    /// Waits for the lock when another thread holds it, and counts the wait. Aborts the process if
    /// a thread has panicked while it held the lock.
    #[cold]
    fn lock_of_others(&self) -> Locked<'_> {
        let began = Instant::now();
        let mut core = self.core.lock().unwrap_or_else(|_| has_panicked());
        core.times.waited.count(began.elapsed());
        Locked::new(core)
    }

    fn with<R>(&self, act: impl FnOnce(&mut RequestTable, Time, &mut Wakers) -> R) -> R {
        let mut wakers = Wakers::new();
        let mut requests = self.lock();
        let now = self.now();
        requests.end_lease(now, &mut wakers);
        let result = act(&mut requests, now, &mut wakers);
        drop(requests);
        wakers.into_iter().for_each(Waker::wake);
        result
    }
}

/// Aborts the process after a panic of the engine. The engine's tables may be half changed. A
/// process that went on would hand out slots that are never given back. A restart is the quickest
/// way to serve again.
fn has_panicked() -> ! {
    bywash_terminal::stderr::say("the engine has panicked; this is a fault in bywash. Aborting.");
    std::process::abort()
}

#[cfg(all(test, shuttle))]
mod schedules;

#[cfg(test)]
pub(crate) mod tests;
