//! What all threads of a pool share: the decisions, and who waits for them.
//!
//! One lock. It is taken to begin and to end a request, when a scope has its first task and its last, and by a thread
//! that gives its slot back; not for each task. Whoever holds it may take the lock of a bag, never the other way round.

use std::collections::VecDeque;
use std::panic::catch_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use bywash_engine::levels::{Grant, LevelId, Levels, Ticket};
use bywash_units::{Span, Time};
use parking_lot::{Condvar, Mutex, MutexGuard};

use crate::error::Refused;
use crate::request::Request;
use crate::seat::{Seat, Told};
use crate::stats::Tally;
use crate::task::{Bag, Hand};
use crate::worker;

/// A slot is kept for so long whoever else wants it: below it, handing it over would cost more than it brings.
pub(crate) const QUANTUM: Span = Span::from_micros(200);

/// How often a worker that finds nobody in the pool looks once more, and lets others run in between, before it sleeps.
/// Who comes right after is served by a thread that is awake. With somebody here it would take turns from those who run.
const LOOKS: u32 = 32;

/// What a worker is to do, with a slot.
pub(crate) enum Work {
    /// To run a request that nobody waits for.
    Begin(Ticket, LevelId, Job),
    /// To run tasks of a request.
    Help(Ticket, Arc<Bag>),
}

/// A request that was handed in.
pub(crate) type Job = Box<dyn FnOnce(&mut Request) + Send>;

/// Who begins when a request's turn comes.
enum Waiter {
    Thread(Arc<Seat>),
    Job(Job),
    Nobody,
}

struct Entry {
    level: LevelId,
    ticket: Ticket,
    waiter: Waiter,
    bag: Option<Arc<Bag>>,
}

/// See the module.
pub(crate) struct Desk {
    pub(crate) names: Vec<String>,
    pub(crate) terms: Vec<bywash_engine::levels::Level>,
    begun: Instant,
    /// What a worker does first.
    begins: Option<fn()>,
    state: Mutex<State>,
    work: Condvar,
    /// Told when nobody is here any more.
    empty: Condvar,
    /// Whether somebody waits for a slot: a hint, read between tasks.
    pressed: AtomicBool,
    #[cfg(feature = "rayon")]
    pub(crate) rayon: crate::rayon::Shelf,
}

/// Slots that a request has beside its own, until it is dropped.
#[cfg(feature = "rayon")]
pub(crate) struct Lease<'d> {
    desk: &'d Arc<Desk>,
    ticket: Ticket,
    others: u32,
    since: Time,
}

#[cfg(feature = "rayon")]
impl Lease<'_> {
    /// With the request's own.
    pub(crate) const fn threads(&self) -> u32 {
        self.others + 1
    }
}

#[cfg(feature = "rayon")]
impl Drop for Lease<'_> {
    fn drop(&mut self) {
        let mut state = self.desk.lock();
        let now = self.desk.now();
        for _ in 0..self.others {
            state.levels.release(now, self.ticket, now.since(self.since));
        }
        self.desk.deal(state, 0);
    }
}

pub(crate) struct State {
    pub(crate) levels: Levels,
    pub(crate) tally: Tally,
    entries: Vec<Entry>,
    ready: VecDeque<Work>,
    pub(crate) closed: bool,
    /// Requests that have come and not gone.
    here: usize,
    idle: usize,
    workers: usize,
    most_workers: usize,
}

impl Desk {
    pub(crate) fn new(
        names: Vec<String>,
        terms: Vec<bywash_engine::levels::Level>,
        levels: Levels,
        most_workers: usize,
        begins: Option<fn()>,
    ) -> Self {
        let state = State {
            levels,
            tally: Tally::new(terms.len()),
            entries: Vec::new(),
            ready: VecDeque::new(),
            closed: false,
            here: 0,
            idle: 0,
            workers: 0,
            most_workers,
        };
        Self {
            names,
            terms,
            begun: Instant::now(),
            begins,
            state: Mutex::new(state),
            work: Condvar::new(),
            empty: Condvar::new(),
            pressed: AtomicBool::new(false),
            #[cfg(feature = "rayon")]
            rayon: crate::rayon::Shelf::default(),
        }
    }

    pub(crate) fn now(&self) -> Time {
        Time::ZERO + Span::from(self.begun.elapsed())
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// The level of a name.
    pub(crate) fn level(&self, name: &str) -> Result<LevelId, Refused> {
        let found = self.names.iter().position(|known| known == name);
        found.map(LevelId).ok_or_else(|| Refused::Unknown {
            name: name.chars().take(64).collect(),
            there_is: self.names.join(", "),
        })
    }

    /// A thread's request waits for its turn.
    pub(crate) fn arrive(
        self: &Arc<Self>,
        level: LevelId,
        seat: &Arc<Seat>,
    ) -> Result<Ticket, Refused> {
        self.enter(level, Waiter::Thread(Arc::clone(seat)))
    }

    /// A request that a worker shall run.
    pub(crate) fn hand_in(self: &Arc<Self>, level: LevelId, job: Job) -> Result<(), Refused> {
        self.enter(level, Waiter::Job(job)).map(drop)
    }

    fn enter(self: &Arc<Self>, level: LevelId, waiter: Waiter) -> Result<Ticket, Refused> {
        let mut state = self.lock();
        if state.closed {
            return Err(Refused::Closed);
        }
        let Ok(ticket) = state.levels.arrive(self.now(), level) else {
            state.tally.refused(level);
            return Err(Refused::Full(self.names[level.0].clone()));
        };
        let entry = Entry { level, ticket, waiter, bag: None };
        if ticket.index() == state.entries.len() {
            state.entries.push(entry);
        } else {
            state.entries[ticket.index()] = entry;
        }
        state.here += 1;
        self.deal(state, 0);
        Ok(ticket)
    }

    /// A request that waits has waited long enough; `false` if its turn has come in the meantime.
    pub(crate) fn leave(&self, level: LevelId, ticket: Ticket, seat: &Seat) -> bool {
        let mut state = self.lock();
        if seat.told().is_some() {
            return false;
        }
        state.entries[ticket.index()].waiter = Waiter::Nobody;
        state.levels.leave(ticket);
        state.tally.left(level);
        self.gone(&mut state);
        true
    }

    /// The number of tasks that wait in a request's bag has become some, or none.
    pub(crate) fn tasks_changed(self: &Arc<Self>, ticket: Ticket, bag: &Arc<Bag>) {
        let mut state = self.lock();
        state.wants(ticket, bag);
        self.deal(state, 0);
    }

    /// A request's own thread gives back the slot that it has had since then, and waits.
    pub(crate) fn pause(self: &Arc<Self>, ticket: Ticket, bag: &Arc<Bag>, since: Time) {
        let mut state = self.lock();
        let now = self.now();
        state.wants(ticket, bag);
        state.levels.release(now, ticket, now.since(since));
        self.deal(state, 0);
    }

    /// A worker leaves a request with a slot that it has had since then.
    pub(crate) fn leave_bag(self: &Arc<Self>, ticket: Ticket, bag: &Arc<Bag>, since: Time) {
        let mut state = self.lock();
        // Under the lock: the request cannot end in between, and its number go to another.
        let now = self.now();
        if let Some(owner) = bag.leave() {
            state.levels.hand_over(now, ticket, now.since(since));
            owner.tell(Told::Slot);
            return;
        }
        state.wants(ticket, bag);
        state.levels.release(now, ticket, now.since(since));
        self.deal(state, 1);
    }

    /// Workers that were called to a request and have not come are not needed any more.
    pub(crate) fn call_off(self: &Arc<Self>, ticket: Ticket, bag: &Arc<Bag>) {
        let mut state = self.lock();
        let before = state.ready.len();
        let is_called = |work: &Work| matches!(work, Work::Help(to, _) if *to == ticket);
        state.ready.retain(|work| !is_called(work));
        let called = before - state.ready.len();
        let now = self.now();
        for _ in 0..called {
            // The owner is at work itself: nobody waits.
            bag.come();
            let owner = bag.leave();
            debug_assert!(owner.is_none(), "the owner calls off");
            state.levels.release(now, ticket, Span::ZERO);
        }
        if called > 0 {
            state.wants(ticket, bag);
            self.deal(state, 0);
        }
    }

    /// Takes slots for a running request, `most` beside its own, as long as nobody else wants them. So that code which
    /// knows nothing of slots may run on as many threads.
    #[cfg(feature = "rayon")]
    pub(crate) fn lease(self: &Arc<Self>, ticket: Ticket, most: u32) -> Lease<'_> {
        let mut state = self.lock();
        let now = self.now();
        state.levels.want(ticket, most);
        let mut others = 0;
        while let Some(grant) = state.levels.grant(now) {
            if grant == Grant::Widen(ticket) { others += 1 } else { state.tell(grant) }
        }
        let kept = crate::rayon::size(others + 1) - 1;
        state.levels.want(ticket, 0);
        for _ in kept..others {
            state.levels.release(now, ticket, Span::ZERO);
        }
        self.deal(state, 0);
        Lease { desk: self, ticket, others: kept, since: now }
    }

    /// A request is over: its own thread gives back the slot that it has had since then, and if it is one of the pool's it
    /// asks for work next.
    pub(crate) fn end(
        self: &Arc<Self>,
        ticket: Ticket,
        since: Time,
        panicked: bool,
        coming: usize,
    ) {
        let mut state = self.lock();
        let now = self.now();
        state.levels.release(now, ticket, now.since(since));
        let ended = state.levels.end(now, ticket);
        state.tally.ended(&ended, panicked);
        self.gone(&mut state);
        state.entries[ticket.index()].bag = None;
        self.deal(state, coming);
    }

    /// Whether a thread that is between two tasks, and has had its slot since then, should ask anew.
    pub(crate) fn should_yield(&self, since: Time) -> bool {
        self.pressed.load(Ordering::Relaxed) && self.now().since(since) >= QUANTUM
    }

    /// No more requests come in; who waits is told so.
    pub(crate) fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        let mut dropped = Vec::new();
        for index in 0..state.entries.len() {
            let entry = &mut state.entries[index];
            let (level, ticket) = (entry.level, entry.ticket);
            match std::mem::replace(&mut entry.waiter, Waiter::Nobody) {
                Waiter::Nobody => continue,
                Waiter::Thread(seat) => seat.tell(Told::Closed),
                Waiter::Job(job) => dropped.push(job),
            }
            state.levels.leave(ticket);
            state.tally.left(level);
            self.gone(&mut state);
        }
        self.work.notify_all();
        drop(state);
        // What they own may be anything, and may use the pool.
        drop(dropped);
    }

    /// One who was here is not any more.
    fn gone(&self, state: &mut State) {
        state.here -= 1;
        if state.here == 0 {
            self.empty.notify_all();
            if state.closed {
                self.work.notify_all();
            }
        }
    }

    pub(crate) fn wait_until_empty(&self) {
        let mut state = self.lock();
        while state.here > 0 {
            self.empty.wait(&mut state);
        }
    }

    /// The same, for no longer than that: whether nobody is here.
    pub(crate) fn is_empty_by(&self, end: Instant) -> bool {
        let mut state = self.lock();
        while state.here > 0 {
            if self.empty.wait_until(&mut state, end).timed_out() {
                return state.here == 0;
            }
        }
        true
    }

    /// The next thing to do for a worker that has come, or come back; `None` if it is to go.
    pub(crate) fn next_work(&self, comes_back: bool) -> Option<Work> {
        let mut state = self.lock();
        state.idle += usize::from(comes_back);
        let mut looks = 0;
        loop {
            if let Some(work) = state.ready.pop_front() {
                state.idle -= 1;
                return Some(work);
            }
            if state.closed && state.here == 0 {
                state.workers -= 1;
                return None;
            }
            if state.here == 0 && looks < LOOKS {
                looks += 1;
                MutexGuard::unlocked(&mut state, std::thread::yield_now);
                continue;
            }
            self.work.wait(&mut state);
        }
    }

    /// Starts a worker, which counts as idle until it has work.
    pub(crate) fn add_worker(self: &Arc<Self>, state: &mut State) -> std::io::Result<()> {
        let desk = Arc::clone(self);
        let name = format!("levels-{}", state.workers);
        let run = move || {
            // It counts as one that looks for work, and must: what the program throws is of no use to anybody.
            if let Some(begins) = desk.begins
                && let Err(panic) = catch_unwind(begins)
            {
                std::mem::forget(panic);
            }
            worker::run(&desk);
        };
        std::thread::Builder::new().name(name).spawn(run)?;
        state.workers += 1;
        state.idle += 1;
        Ok(())
    }

    /// Gives free slots away, and lets go of the lock. So many of the workers that are not idle ask for work next.
    fn deal(self: &Arc<Self>, mut state: MutexGuard<'_, State>, coming: usize) {
        let now = self.now();
        while let Some(grant) = state.levels.grant(now) {
            state.tell(grant);
        }
        self.pressed.store(state.levels.pressed(), Ordering::Relaxed);
        while state.ready.len() > state.idle + coming && state.workers < state.most_workers {
            if self.add_worker(&mut state).is_err() {
                // What is ready is done by those who come back.
                break;
            }
        }
        let calls = state.ready.len().saturating_sub(coming);
        drop(state);
        for _ in 0..calls {
            self.work.notify_one();
        }
    }
}

impl State {
    /// Tells whoever was given a slot.
    fn tell(&mut self, grant: Grant) {
        let entry = &mut self.entries[grant.ticket().index()];
        match grant {
            Grant::Begin(ticket) => match std::mem::replace(&mut entry.waiter, Waiter::Nobody) {
                Waiter::Thread(seat) => seat.tell(Told::Slot),
                Waiter::Job(job) => self.ready.push_back(Work::Begin(ticket, entry.level, job)),
                Waiter::Nobody => unreachable!("who leaves is taken out of the levels"),
            },
            Grant::Widen(ticket) => {
                let bag = entry.bag.as_ref().expect("who wants threads has a bag");
                match bag.next_hand() {
                    Hand::Owner(seat) => seat.tell(Told::Slot),
                    Hand::Worker => self.ready.push_back(Work::Help(ticket, Arc::clone(bag))),
                }
            }
        }
    }

    /// A request has work for as many threads as there are tasks in its bag.
    fn wants(&mut self, ticket: Ticket, bag: &Arc<Bag>) {
        let tasks = bag.tell_wanting() as u32;
        if tasks > 0 {
            let known = &mut self.entries[ticket.index()].bag;
            if !known.as_ref().is_some_and(|known| Arc::ptr_eq(known, bag)) {
                *known = Some(Arc::clone(bag));
            }
        }
        self.levels.want(ticket, tasks);
    }
}
