//! The state that all threads of a pool share: the scheduler, and the threads that wait for slots.
//!
//! One lock protects the state. It is taken when a request begins or ends, when the first task of a
//! scope is queued or the last one is taken, and when a thread gives its slot back. It is not taken
//! for each task. A thread that holds this lock may take the lock of a task queue, but never the
//! other way round.

#[cfg(feature = "rayon")]
mod lease;
mod worker;

use std::collections::VecDeque;
use std::panic::catch_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::ThreadId;
use std::time::Instant;

use bywash_engine::levels::{Grant, LevelId, Levels, Ticket};
use bywash_units::{Time, TimeSpan};
use parking_lot::{Condvar, Mutex, MutexGuard};

use crate::error::Refused;
use crate::parker::{Parker, Wakeup};
use crate::stats::Tally;
use crate::task::{NextThread, TaskQueue};

/// The time for which a thread keeps its slot even if other requests want one. An earlier change
/// would cost more than it gains.
pub(crate) const QUANTUM: TimeSpan = TimeSpan::from_micros(200);

/// The number of times that a worker without work checks again before it sleeps, if the pool is
/// empty. It yields to other threads between checks. So a request that arrives shortly afterwards
/// finds a thread that is awake. If the pool is not empty, the worker sleeps immediately, because
/// its checks would take processor time from running requests.
const MAX_POLLS: u32 = 32;

/// The work that a worker gets together with a slot.
pub(crate) enum Work {
    /// The worker runs a request that was submitted as a job.
    Begin(Ticket, LevelId, Job),
    /// The worker runs tasks of a request that already runs.
    Help(Ticket, Arc<TaskQueue>),
}

/// A job: the code of a request that a worker runs. The worker holds the request's slot.
pub(crate) type Job = Box<dyn FnOnce(&Arc<PoolScheduler>, Ticket, LevelId) + Send>;

/// The means by which a request begins when it gets its first slot: its waiting thread, or a job.
enum Waiter {
    Thread(Arc<Parker>),
    Job(Job),
    Nobody,
}

struct Entry {
    level: LevelId,
    ticket: Ticket,
    waiter: Waiter,
    /// The thread that has the request: the thread that queued it, or the last thread that opened a
    /// scope in it. A job on a worker, and a request that has left the pool, have `None`.
    thread: Option<ThreadId>,
    queue: Option<Arc<TaskQueue>>,
}

/// The shared state of a pool. See the module documentation.
pub(crate) struct PoolScheduler {
    pub(crate) names: Vec<String>,
    pub(crate) level_settings: Vec<bywash_engine::levels::Level>,
    begun: Instant,
    /// The function that each new worker calls before its first work.
    begins: Option<fn()>,
    state: Mutex<State>,
    work: Condvar,
    /// The condition variable that is notified when the last request has left the pool.
    empty: Condvar,
    /// Whether a waiting request would get a slot if one became free. A thread reads this between
    /// two tasks to decide whether to give its slot back. It takes no lock, so the value may be out
    /// of date.
    pressed: AtomicBool,
    #[cfg(feature = "rayon")]
    pub(crate) rayon: crate::rayon::PoolCache,
}

pub(crate) struct State {
    pub(crate) levels: Levels,
    pub(crate) tally: Tally,
    entries: Vec<Entry>,
    ready: VecDeque<Work>,
    pub(crate) closed: bool,
    /// The number of requests in the pool: those that wait and those that run.
    here: usize,
    idle: usize,
    workers: usize,
    most_workers: usize,
}

impl PoolScheduler {
    pub(crate) fn new(
        names: Vec<String>,
        level_settings: Vec<bywash_engine::levels::Level>,
        levels: Levels,
        most_workers: usize,
        begins: Option<fn()>,
    ) -> Self {
        let state = State {
            levels,
            tally: Tally::new(level_settings.len()),
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
            level_settings,
            begun: Instant::now(),
            begins,
            state: Mutex::new(state),
            work: Condvar::new(),
            empty: Condvar::new(),
            pressed: AtomicBool::new(false),
            #[cfg(feature = "rayon")]
            rayon: crate::rayon::PoolCache::default(),
        }
    }

    pub(crate) fn now(&self) -> Time {
        Time::ZERO + TimeSpan::from(self.begun.elapsed())
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// Returns the level named `name`. Returns an error if there is none.
    pub(crate) fn level(&self, name: &str) -> Result<LevelId, Refused> {
        let found = self.names.iter().position(|known| known == name);
        found.map(LevelId).ok_or_else(|| Refused::Unknown {
            name: name.chars().take(64).collect(),
            there_is: self.names.join(", "),
        })
    }

    /// Queues a request whose own thread waits for the request's slot. Returns an error if the
    /// queue is full or the pool is closed.
    pub(crate) fn arrive(
        self: &Arc<Self>,
        level: LevelId,
        parker: &Arc<Parker>,
    ) -> Result<Ticket, Refused> {
        self.enter(level, Waiter::Thread(Arc::clone(parker)))
    }

    /// Queues a request that a worker runs as a job. Returns an error if the queue is full or the
    /// pool is closed.
    pub(crate) fn submit(self: &Arc<Self>, level: LevelId, job: Job) -> Result<(), Refused> {
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
        let thread = match &waiter {
            Waiter::Thread(parker) => Some(parker.thread()),
            Waiter::Job(_) | Waiter::Nobody => None,
        };
        let entry = Entry { level, ticket, waiter, thread, queue: None };
        if ticket.index() == state.entries.len() {
            state.entries.push(entry);
        } else {
            state.entries[ticket.index()] = entry;
        }
        state.here += 1;
        self.dispatch(state, 0);
        Ok(ticket)
    }

    /// Removes a waiting request from the queue because it has waited long enough. Returns `false`
    /// if the request has got its slot in the meantime.
    pub(crate) fn leave(&self, level: LevelId, ticket: Ticket, parker: &Parker) -> bool {
        let mut state = self.lock();
        if parker.wakeup().is_some() {
            return false;
        }
        let entry = &mut state.entries[ticket.index()];
        entry.waiter = Waiter::Nobody;
        entry.thread = None;
        state.levels.leave(ticket);
        state.tally.left(level);
        self.note_gone(&mut state);
        true
    }

    /// Updates the number of threads that a request wants. Call this function when the request's
    /// task queue has become empty or is no longer empty.
    pub(crate) fn tasks_changed(self: &Arc<Self>, ticket: Ticket, queue: &Arc<TaskQueue>) {
        let mut state = self.lock();
        state.wants(ticket, queue);
        self.dispatch(state, 0);
    }

    /// Gives back the slot that a request's own thread has held since `since`. After the call, the
    /// thread waits for its next slot.
    pub(crate) fn pause(self: &Arc<Self>, ticket: Ticket, queue: &Arc<TaskQueue>, since: Time) {
        let mut state = self.lock();
        let now = self.now();
        state.wants(ticket, queue);
        state.levels.release(now, ticket, now.since(since));
        self.dispatch(state, 0);
    }

    /// Ends the work of a worker on the tasks of a request. The worker has held its slot since
    /// `since`. If the request's own thread waits and no other worker is left, the slot goes to
    /// that thread.
    pub(crate) fn leave_queue(
        self: &Arc<Self>,
        ticket: Ticket,
        queue: &Arc<TaskQueue>,
        since: Time,
    ) {
        let mut state = self.lock();
        // The time is read under the lock. Otherwise the request could end before, and its ticket
        // could be reused.
        let now = self.now();
        if let Some(owner) = queue.leave() {
            state.levels.hand_over(now, ticket, now.since(since));
            owner.tell(Wakeup::Slot);
            return;
        }
        state.wants(ticket, queue);
        state.levels.release(now, ticket, now.since(since));
        self.dispatch(state, 1);
    }

    /// Cancels the calls of workers that were called to a request and have not arrived yet.
    pub(crate) fn cancel_help(self: &Arc<Self>, ticket: Ticket, queue: &Arc<TaskQueue>) {
        let mut state = self.lock();
        let before = state.ready.len();
        let is_called = |work: &Work| matches!(work, Work::Help(to, _) if *to == ticket);
        state.ready.retain(|work| !is_called(work));
        let called = before - state.ready.len();
        let now = self.now();
        for _ in 0..called {
            // The owner runs this code, so it does not wait.
            queue.note_arrival();
            let owner = queue.leave();
            debug_assert!(owner.is_none(), "the owner calls off");
            state.levels.release(now, ticket, TimeSpan::ZERO);
        }
        if called > 0 {
            state.wants(ticket, queue);
            self.dispatch(state, 0);
        }
    }

    /// Ends a request, and takes back the slot that its thread has held since `since`. `panicked`
    /// says whether the request failed. `coming` is 1 if the thread is a worker, which asks for
    /// work next, and otherwise 0.
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
        self.note_gone(&mut state);
        let entry = &mut state.entries[ticket.index()];
        entry.thread = None;
        entry.queue = None;
        self.dispatch(state, coming);
    }

    /// Returns whether a thread between two tasks should give its slot back. `since` is the time
    /// since which the thread has held the slot.
    pub(crate) fn should_yield(&self, since: Time) -> bool {
        self.pressed.load(Ordering::Relaxed) && self.now().since(since) >= QUANTUM
    }

    /// Closes the pool: it accepts no more requests, and waiting requests are refused.
    pub(crate) fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        let mut dropped = Vec::new();
        for index in 0..state.entries.len() {
            let entry = &mut state.entries[index];
            let (level, ticket) = (entry.level, entry.ticket);
            match std::mem::replace(&mut entry.waiter, Waiter::Nobody) {
                Waiter::Nobody => continue,
                Waiter::Thread(parker) => parker.tell(Wakeup::Closed),
                Waiter::Job(job) => dropped.push(job),
            }
            entry.thread = None;
            state.levels.leave(ticket);
            state.tally.left(level);
            self.note_gone(&mut state);
        }
        self.work.notify_all();
        drop(state);
        // The lock is released here. Dropping a job may run arbitrary code, which may use the pool.
        drop(dropped);
    }

    /// Notes that a request has left the pool, and notifies the threads that wait until it is
    /// empty.
    fn note_gone(&self, state: &mut State) {
        state.here -= 1;
        if state.here == 0 {
            self.empty.notify_all();
            if state.closed {
                self.work.notify_all();
            }
        }
    }

    /// Records that the calling thread has the request from now on.
    pub(crate) fn hand_to_this_thread(&self, ticket: Ticket) {
        self.lock().entries[ticket.index()].thread = Some(std::thread::current().id());
    }

    /// Returns whether the calling thread has a request in the pool, or is one of its workers.
    pub(crate) fn has_request_here(&self) -> bool {
        let here = Some(std::thread::current().id());
        worker::works_for(self) || self.lock().entries.iter().any(|entry| entry.thread == here)
    }

    pub(crate) fn wait_until_empty(&self) {
        let mut state = self.lock();
        while state.here > 0 {
            self.empty.wait(&mut state);
        }
    }

    /// Waits until the pool is empty, or until the time `end`. Returns whether the pool is empty.
    pub(crate) fn is_empty_by(&self, end: Instant) -> bool {
        let mut state = self.lock();
        while state.here > 0 {
            if self.empty.wait_until(&mut state, end).timed_out() {
                return state.here == 0;
            }
        }
        true
    }

    /// Waits for the next work of a worker, and returns it. Returns `None` if the worker is to end.
    /// `comes_back` says whether the worker has just finished other work.
    pub(crate) fn next_work(&self, comes_back: bool) -> Option<Work> {
        let mut state = self.lock();
        state.idle += usize::from(comes_back);
        let mut polls = 0;
        loop {
            if let Some(work) = state.ready.pop_front() {
                state.idle -= 1;
                return Some(work);
            }
            if state.closed && state.here == 0 {
                state.workers -= 1;
                return None;
            }
            if state.here == 0 && polls < MAX_POLLS {
                polls += 1;
                MutexGuard::unlocked(&mut state, std::thread::yield_now);
                continue;
            }
            self.work.wait(&mut state);
        }
    }

    /// Starts a worker. The worker counts as idle until it has work.
    pub(crate) fn add_worker(self: &Arc<Self>, state: &mut State) -> std::io::Result<()> {
        let scheduler = Arc::clone(self);
        let name = format!("levels-{}", state.workers);
        let run = move || {
            // The worker already counts as idle, so it must not end. A panic of `begins` is
            // ignored.
            if let Some(begins) = scheduler.begins
                && let Err(panic) = catch_unwind(begins)
            {
                std::mem::forget(panic);
            }
            worker::run(&scheduler);
        };
        std::thread::Builder::new().name(name).spawn(run)?;
        state.workers += 1;
        state.idle += 1;
        Ok(())
    }

    /// Hands out the free slots, and releases the lock. `coming` is the number of workers that are
    /// not counted as idle but ask for work next.
    fn dispatch(self: &Arc<Self>, mut state: MutexGuard<'_, State>, coming: usize) {
        let now = self.now();
        while let Some(grant) = state.levels.grant(now) {
            state.tell(grant);
        }
        self.pressed.store(state.levels.pressed(), Ordering::Relaxed);
        while state.ready.len() > state.idle + coming && state.workers < state.most_workers {
            if self.add_worker(&mut state).is_err() {
                // If no worker can be started, workers that finish other work do the work that is
                // ready.
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
    /// Notifies the waiting thread of a request, or a worker, that it has got a slot.
    fn tell(&mut self, grant: Grant) {
        let entry = &mut self.entries[grant.ticket().index()];
        match grant {
            Grant::Begin(ticket) => match std::mem::replace(&mut entry.waiter, Waiter::Nobody) {
                Waiter::Thread(parker) => parker.tell(Wakeup::Slot),
                Waiter::Job(job) => self.ready.push_back(Work::Begin(ticket, entry.level, job)),
                Waiter::Nobody => unreachable!("who leaves is taken out of the levels"),
            },
            Grant::Widen(ticket) => {
                let queue = entry.queue.as_ref().expect("who wants threads has a queue");
                match queue.next_thread() {
                    NextThread::Owner(parker) => parker.tell(Wakeup::Slot),
                    NextThread::Worker => {
                        self.ready.push_back(Work::Help(ticket, Arc::clone(queue)));
                    }
                }
            }
        }
    }

    /// Sets how many more threads a request wants: one for each queued task for which no worker has
    /// been called.
    fn wants(&mut self, ticket: Ticket, queue: &Arc<TaskQueue>) {
        let tasks = queue.tell_wanting() as u32;
        if tasks > 0 {
            let known = &mut self.entries[ticket.index()].queue;
            if !known.as_ref().is_some_and(|known| Arc::ptr_eq(known, queue)) {
                *known = Some(Arc::clone(queue));
            }
        }
        self.levels.want(ticket, tasks);
    }
}
