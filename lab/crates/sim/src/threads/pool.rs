//! Simulates threads under bywash's levels of service. The engine's module `levels` decides which
//! threads run, and the processors work in virtual time.
//!
//! In this module, a slot is the right to use a processor. Between two tasks, a thread returns its
//! slot if another request would get the slot, and continues otherwise. Each request has one thread
//! of its own. When threads have taken all tasks of the request, its own thread returns its slot.
//! It gets a slot again from the last other thread that ends. The thread pool of `crates/levels`
//! does the same with real threads.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use bywash_engine::levels::{Goal, Grant, Level, LevelId, Levels, Ticket};
use bywash_scenario::{Parallel, Promise, Threads};
use bywash_units::{Time, TimeSpan};

use super::Left;
use crate::application::{Application, Meters};

#[derive(Clone, Copy, Debug)]
struct Request {
    ticket: Ticket,
    left: Left,
    begun: bool,
    /// The number of threads that work on the request; 0 while the request waits between two tasks.
    threads: u32,
    /// The total work of the request's completed tasks, in nanoseconds.
    done: u64,
    serial: u64,
}

/// A thread that works on a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Thread {
    ends: Time,
    order: u64,
    id: u32,
    serial: u64,
    /// The time at which the thread got its slot.
    since: Time,
    work: u64,
    /// Whether this is the request's own thread, which stays until the request ends.
    own: bool,
}

#[derive(Debug)]
pub(super) struct Pool {
    processors: u32,
    serial_share: f64,
    classes: Vec<Parallel>,
    levels: Levels,
    now: Time,
    requests: Vec<Option<Request>>,
    /// Working threads, by the time at which their task ends. Entries whose request has left are
    /// skipped later.
    threads: BinaryHeap<Reverse<Thread>>,
    busy: u32,
    inside: u32,
    serial: u64,
    meters: Meters,
}

impl Pool {
    pub(super) fn new(processors: u32, threads: &Threads, classes: Vec<Parallel>) -> Self {
        let level = |class: &Parallel| Level {
            max_threads: class.most,
            min_threads: class.least,
            weight: class.weight,
            floor: class.floor,
            queue: usize::MAX,
        };
        let goal = threads.goal.map(|promise| match promise {
            Promise::Ratio { fast, slow, target } => {
                Goal::Ratio { fast: LevelId(fast), slow: LevelId(slow), target }
            }
            Promise::Percentile { class, share, within } => {
                Goal::Percentile { level: LevelId(class), share, within }
            }
        });
        let levels = Levels::new(processors, classes.iter().map(level).collect(), goal);
        Self {
            processors,
            serial_share: threads.serial,
            classes,
            levels,
            now: Time::ZERO,
            requests: Vec::new(),
            threads: BinaryHeap::new(),
            busy: 0,
            inside: 0,
            serial: 0,
            meters: Meters::default(),
        }
    }

    fn advance(&mut self, now: Time) {
        let without = self.inside.saturating_sub(self.busy);
        let time = now.since(self.now);
        super::pass(&mut self.meters, time, self.processors, self.busy, without);
        self.now = now;
    }

    /// Starts a thread on each slot that the engine's levels grant.
    fn assign(&mut self) {
        while let Some(grant) = self.levels.grant(self.now) {
            let ticket = grant.ticket();
            let holds = |request: &Option<Request>| request.is_some_and(|r| r.ticket == ticket);
            let index = self.requests.iter().position(holds);
            let id = index.expect("slots go to requests that are in the pool") as u32;
            let own = grant == Grant::Begin(ticket);
            self.busy += 1;
            let request = self.request(id);
            request.begun = true;
            request.threads += 1;
            self.take_task(id, own, self.now);
        }
    }

    fn request(&mut self, id: u32) -> &mut Request {
        self.requests[id as usize].as_mut().expect("the request is in the pool")
    }

    /// Gives the next task of request `id` to a thread that has a slot. There must be a task that
    /// no thread has taken.
    fn take_task(&mut self, id: u32, own: bool, since: Time) {
        let request = self.request(id);
        request.left.tasks -= 1;
        let (ticket, left) = (request.ticket, request.left);
        self.levels.want(ticket, left.tasks);
        self.work(id, own, since, left.task);
    }

    fn work(&mut self, id: u32, own: bool, since: Time, work: u64) {
        self.serial += 1;
        let (serial, order) = (self.request(id).serial, self.serial);
        let ends = self.now + TimeSpan::from_nanos(work);
        self.threads.push(Reverse(Thread { ends, order, id, serial, since, work, own }));
    }

    /// Releases the slot of a thread. The thread leaves its request, or waits for the other threads
    /// of the request.
    fn rest(&mut self, thread: Thread) {
        let request = self.request(thread.id);
        request.threads -= 1;
        let ticket = request.ticket;
        self.busy -= 1;
        self.levels.release(self.now, ticket, self.now.since(thread.since));
    }

    /// Continues with a thread that has ended a task. Returns whether its request is done.
    fn next_step(&mut self, thread: Thread) -> bool {
        let Left { tasks, serial, .. } = self.request(thread.id).left;
        if tasks > 0 {
            if self.levels.pressed() {
                // If no other request has a higher claim to the slot, the levels grant it to this
                // request again.
                self.rest(thread);
            } else {
                self.take_task(thread.id, thread.own, thread.since);
            }
            return false;
        }
        if self.request(thread.id).threads > 1 {
            self.rest(thread);
            return false;
        }
        // The last working thread is the request's own thread, or gives its slot to that thread.
        if serial > 0 {
            self.request(thread.id).left.serial = 0;
            self.work(thread.id, true, thread.since, serial);
            return false;
        }
        self.rest(thread);
        true
    }

    fn next_thread(&mut self) -> Option<Thread> {
        loop {
            let Reverse(thread) = *self.threads.peek()?;
            match &self.requests[thread.id as usize] {
                Some(request) if request.serial == thread.serial => return Some(thread),
                _ => self.threads.pop(),
            };
        }
    }
}

impl Application for Pool {
    fn admit(&mut self, now: Time, id: u32, class: usize, demand: TimeSpan) {
        self.advance(now);
        self.serial += 1;
        let index = id as usize;
        if index >= self.requests.len() {
            self.requests.resize(index + 1, None);
        }
        let arrived = self.levels.arrive(now, LevelId(class));
        let ticket = arrived.expect("levels of the simulator have room for every request");
        let left = Left::of(demand, self.serial_share, self.classes[class]);
        self.requests[index] =
            Some(Request { ticket, left, begun: false, threads: 0, done: 0, serial: self.serial });
        self.inside += 1;
        self.assign();
    }

    fn remove(&mut self, now: Time, id: u32) -> TimeSpan {
        self.advance(now);
        let Some(request) = self.requests[id as usize] else { return TimeSpan::ZERO };
        let mut done = request.done;
        let own = |thread: &&Reverse<Thread>| thread.0.serial == request.serial;
        let threads: Vec<Thread> = self.threads.iter().filter(own).map(|thread| thread.0).collect();
        for thread in threads {
            done += thread.work - thread.ends.since(now).as_nanos();
            self.rest(thread);
        }
        self.requests[id as usize] = None;
        self.inside -= 1;
        if request.begun {
            self.levels.end(now, request.ticket);
        } else {
            self.levels.leave(request.ticket);
        }
        self.assign();
        TimeSpan::from_nanos(done)
    }

    fn next_end(&mut self) -> Option<Time> {
        self.next_thread().map(|thread| thread.ends)
    }

    fn finish(&mut self, now: Time) -> Option<u32> {
        self.advance(now);
        let thread = self.next_thread()?;
        self.threads.pop();
        self.request(thread.id).done += thread.work;
        let over = self.next_step(thread);
        if over {
            let ticket = self.request(thread.id).ticket;
            self.requests[thread.id as usize] = None;
            self.inside -= 1;
            self.levels.end(now, ticket);
        }
        self.assign();
        over.then_some(thread.id)
    }

    fn is_in_service(&self, id: u32) -> bool {
        let request = self.requests.get(id as usize).and_then(Option::as_ref);
        request.is_some_and(|request| request.begun)
    }

    fn meters(&mut self, now: Time) -> Meters {
        self.advance(now);
        self.meters
    }

    fn workers(&self) -> u32 {
        self.processors
    }
}

#[cfg(test)]
mod tests {
    use bywash_scenario::ThreadScheduler;

    use super::*;

    fn at(seconds: f64) -> Time {
        Time::ZERO + TimeSpan::from_secs_f64(seconds)
    }

    fn pool(processors: u32, serial: f64, classes: &[Parallel]) -> Pool {
        let threads = Threads { scheduler: ThreadScheduler::Levels, serial, goal: None };
        Pool::new(processors, &threads, classes.to_vec())
    }

    fn play(pool: &mut Pool) -> Vec<(u32, f64)> {
        let mut ends = Vec::new();
        while let Some(next) = pool.next_end() {
            ends.extend(pool.finish(next).map(|id| (id, next.as_secs_f64())));
        }
        ends
    }

    const WIDE: Parallel = Parallel { tasks: 4, most: 4, least: 1, weight: 1.0, floor: 0.0 };

    #[test]
    fn a_lone_request_has_all_threads_that_it_may_and_a_serial_rest() {
        let mut pool = pool(8, 0.2, &[WIDE]);
        pool.admit(at(0.0), 0, 0, TimeSpan::from_secs(1));
        let ends = play(&mut pool);
        assert_eq!(ends.len(), 1);
        // Four tasks of 0.2 s run, two at a time. The serial rest of 0.2 s runs on one thread.
        assert!((ends[0].1 - 0.4).abs() < 1e-6, "{ends:?}");
    }

    #[test]
    fn who_waits_to_begin_gets_the_slot_that_another_thread_would_be() {
        let mut pool = pool(2, 0.0, &[WIDE]);
        pool.admit(at(0.0), 0, 0, TimeSpan::from_secs(4));
        pool.admit(at(0.5), 1, 0, TimeSpan::from_secs(4));
        // Both processors serve the first request until its tasks end at 1 s. Then each request has
        // one processor.
        let ends = play(&mut pool);
        assert!((ends[0].1 - 3.0).abs() < 1e-6, "{ends:?}");
        assert!((ends[1].1 - 4.0).abs() < 1e-6, "{ends:?}");
    }

    #[test]
    fn who_leaves_gives_its_slots_back_and_its_work_is_known() {
        let mut pool = pool(2, 0.0, &[WIDE]);
        pool.admit(at(0.0), 0, 0, TimeSpan::from_secs(4));
        pool.admit(at(0.0), 1, 0, TimeSpan::from_secs(4));
        pool.admit(at(0.0), 2, 0, TimeSpan::from_secs(4));
        assert_eq!(pool.remove(at(0.5), 2), TimeSpan::ZERO, "it only waited");
        assert_eq!(pool.remove(at(0.5), 0), TimeSpan::from_secs(1), "on both processors");
        let ends = play(&mut pool);
        assert_eq!(ends.len(), 1);
        assert!((ends[0].1 - 2.5).abs() < 1e-6, "{ends:?}");
    }

    #[test]
    fn who_leaves_while_it_waits_between_two_tasks_was_served_and_is_gone() {
        let mut pool = pool(1, 0.0, &[WIDE, Parallel { weight: 9.0, ..Parallel::default() }]);
        pool.admit(at(0.0), 0, 0, TimeSpan::from_secs(4));
        pool.admit(at(0.5), 1, 1, TimeSpan::from_secs(4));
        // At 1 s the first request has ended a task, and the other request has a higher claim to
        // the slot.
        assert_eq!(pool.next_end(), Some(at(1.0)));
        assert_eq!(pool.finish(at(1.0)), None);
        assert!(pool.is_in_service(0) && pool.is_in_service(1));
        assert_eq!(pool.remove(at(2.0), 0), TimeSpan::from_secs(1));
        let ends = play(&mut pool);
        assert_eq!(ends.len(), 1);
        assert!((ends[0].1 - 5.0).abs() < 1e-6, "{ends:?}");
    }
}
