//! Simulates threads under the operating system: all runnable threads share the processors evenly.
//!
//! A request has its threads from its admission: one per task, up to the maximum of its class
//! [paper 3.1]. As in `servers`, there is one clock of progress, because all threads progress at
//! the same rate.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use bywash_scenario::Parallel;
use bywash_units::{Time, TimeSpan};

use super::Left;
use crate::application::{Application, Meters};

#[derive(Clone, Copy, Debug)]
struct Running {
    left: Left,
    threads: u32,
    begun: u64,
    serial: u64,
}

#[derive(Debug)]
pub(super) struct System {
    processors: u32,
    serial_share: f64,
    classes: Vec<Parallel>,
    now: Time,
    /// The work done so far by a thread that has run since the start of the run, in nanoseconds.
    progress: f64,
    requests: Vec<Option<Running>>,
    /// Running threads: for each, the progress at which its task is done, a serial number, and the
    /// id of its request. The least progress comes first. Entries whose request has left are
    /// skipped later.
    ends: BinaryHeap<Reverse<(u64, u64, u32)>>,
    threads: u32,
    inside: u32,
    serial: u64,
    meters: Meters,
}

impl System {
    pub(super) fn new(processors: u32, serial_share: f64, classes: Vec<Parallel>) -> Self {
        Self {
            processors,
            serial_share,
            classes,
            now: Time::ZERO,
            progress: 0.0,
            requests: Vec::new(),
            ends: BinaryHeap::new(),
            threads: 0,
            inside: 0,
            serial: 0,
            meters: Meters::default(),
        }
    }

    fn rate(&self) -> f64 {
        let threads = f64::from(self.threads.max(self.processors));
        f64::from(self.processors) / threads
    }

    fn advance(&mut self, now: Time) {
        let time = now.since(self.now);
        self.progress += time.as_nanos() as f64 * self.rate();
        let busy = self.threads.min(self.processors);
        let without = self.inside.saturating_sub(self.processors);
        super::pass(&mut self.meters, time, self.processors, busy, without);
        self.now = now;
    }

    /// Starts a task of `work` nanoseconds on a thread of request `id`.
    fn run(&mut self, id: u32, serial: u64, work: u64) {
        let done = (self.progress + work as f64).ceil() as u64;
        self.ends.push(Reverse((done, serial, id)));
    }

    /// Returns the final progress and the request's id of the thread that finishes its task next.
    /// Drops threads whose request has left. Returns `None` if no thread runs.
    fn next_done(&mut self) -> Option<(u64, u32)> {
        loop {
            let Reverse((done, serial, id)) = *self.ends.peek()?;
            match &self.requests[id as usize] {
                Some(running) if running.serial == serial => return Some((done, id)),
                _ => self.ends.pop(),
            };
        }
    }
}

impl Application for System {
    fn admit(&mut self, now: Time, id: u32, class: usize, demand: TimeSpan) {
        self.advance(now);
        self.serial += 1;
        let index = id as usize;
        if index >= self.requests.len() {
            self.requests.resize(index + 1, None);
        }
        let parallel = self.classes[class];
        let mut left = Left::of(demand, self.serial_share, parallel);
        let threads = parallel.most.min(left.tasks);
        left.tasks -= threads;
        let (serial, task) = (self.serial, left.task);
        let begun = self.progress as u64;
        self.requests[index] = Some(Running { left, threads, begun, serial });
        (self.threads, self.inside) = (self.threads + threads, self.inside + 1);
        (0..threads).for_each(|_| self.run(id, serial, task));
    }

    fn remove(&mut self, now: Time, id: u32) -> TimeSpan {
        self.advance(now);
        let Some(running) = self.requests[id as usize].take() else { return TimeSpan::ZERO };
        (self.threads, self.inside) = (self.threads - running.threads, self.inside - 1);
        TimeSpan::from_nanos(self.progress as u64 - running.begun)
    }

    fn next_end(&mut self) -> Option<Time> {
        let (done, _) = self.next_done()?;
        let left = (done as f64 - self.progress).max(0.0) / self.rate();
        Some(self.now + TimeSpan::from_nanos(left.ceil() as u64))
    }

    fn finish(&mut self, now: Time) -> Option<u32> {
        self.advance(now);
        let (done, id) = self.next_done()?;
        self.progress = self.progress.max(done as f64);
        self.ends.pop();
        let running = self.requests[id as usize].as_mut()?;
        let (serial, left) = (running.serial, running.left);
        if left.tasks > 0 {
            running.left.tasks -= 1;
            self.run(id, serial, left.task);
            return None;
        }
        if running.threads > 1 {
            running.threads -= 1;
            self.threads -= 1;
            return None;
        }
        if left.serial > 0 {
            running.left.serial = 0;
            self.run(id, serial, left.serial);
            return None;
        }
        self.requests[id as usize] = None;
        (self.threads, self.inside) = (self.threads - 1, self.inside - 1);
        Some(id)
    }

    fn is_in_service(&self, id: u32) -> bool {
        self.requests.get(id as usize).is_some_and(Option::is_some)
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
    use super::*;

    fn at(seconds: f64) -> Time {
        Time::ZERO + TimeSpan::from_secs_f64(seconds)
    }

    #[test]
    fn threads_share_processors_evenly_and_a_request_ends_with_its_last() {
        let wide = Parallel { tasks: 4, most: 3, ..Parallel::default() };
        let mut system = System::new(2, 0.0, vec![Parallel::default(), wide]);
        system.admit(at(0.0), 0, 0, TimeSpan::from_secs(1));
        system.admit(at(0.0), 1, 1, TimeSpan::from_secs(2));
        // Four threads run at half speed on two processors, so tasks of half a second take one
        // second. Then the fourth task runs in parallel with the plain request.
        let mut ends = Vec::new();
        while let Some(next) = system.next_end() {
            ends.extend(system.finish(next).map(|id| (id, next.as_secs_f64())));
        }
        assert_eq!(ends.len(), 2);
        assert!((ends[0].1 - 1.5).abs() < 1e-6 && (ends[1].1 - 1.5).abs() < 1e-6, "{ends:?}");
        let meters = system.meters(at(1.5));
        assert!((meters.work - 3e9).abs() < 10.0, "{meters:?}");
    }

    #[test]
    fn who_leaves_makes_room() {
        let mut system = System::new(1, 0.0, vec![Parallel::default()]);
        system.admit(at(0.0), 0, 0, TimeSpan::from_secs(1));
        system.admit(at(0.0), 1, 0, TimeSpan::from_secs(1));
        assert_eq!(system.remove(at(1.0), 0), TimeSpan::from_secs_f64(0.5));
        assert_eq!(system.next_end(), Some(at(1.5)));
    }
}
