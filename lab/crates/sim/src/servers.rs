//! The application in virtual time: workers, and the requests that wait for them inside the
//! application.
//!
//! The gateway assigns slots. This module decides whether a request with a slot also has a worker.
//! With more slots than workers, requests wait inside, where they cannot be ordered (`fifo`), or
//! all are slowed down (`shared`). A request that leaves is removed immediately, whether it is
//! served or waits.
//!
//! One clock of progress serves both disciplines. All requests in service progress at the same
//! rate, so each ends when progress has grown by its demand. A change of the rate (another number
//! of workers, another speed, one more request that shares) affects only how fast progress grows.
//! While the rate is 1, progress equals time, to the nanosecond.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use bywash_scenario::{Discipline, Servers as Description};
use bywash_units::{Time, TimeSpan};

use crate::application::{Application, Meters};

/// The state of a request in the application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RequestState {
    /// The request is not in the application.
    Outside,
    /// The request waits for a worker. `demand` is its work in nanoseconds.
    Waits { demand: u64, serial: u64 },
    /// A worker serves the request, from progress `begun` until progress `done`, both in
    /// nanoseconds.
    Served { begun: u64, done: u64, serial: u64 },
}

/// The application's workers and requests in one run.
#[derive(Debug)]
pub(crate) struct Servers {
    description: Description,
    /// The number of workers at the start of the run.
    first: u32,
    /// The present number of workers.
    workers: u32,
    speed: f64,
    now: Time,
    /// The work done so far on a request that has been in service since the start of the run, in
    /// nanoseconds.
    progress: u64,
    rate: f64,
    states: Vec<RequestState>,
    /// Requests in service: for each, the progress at which it is done, its serial number and its
    /// id. The least progress comes first. Entries of requests that have left are skipped later.
    ends: BinaryHeap<Reverse<(u64, u64, u32)>>,
    /// Requests that wait inside the application, oldest first: for each, its id and serial number.
    /// Entries of requests that have left are skipped later.
    line: VecDeque<(u32, u64)>,
    served: u32,
    waiting: u32,
    serial: u64,
    meters: Meters,
}

impl Servers {
    pub(crate) fn new(description: &Description, workers: u32) -> Self {
        let mut servers = Self {
            description: description.clone(),
            first: workers,
            workers,
            speed: 1.0,
            now: Time::ZERO,
            progress: 0,
            rate: 1.0,
            states: Vec::new(),
            ends: BinaryHeap::new(),
            line: VecDeque::new(),
            served: 0,
            waiting: 0,
            serial: 0,
            meters: Meters::default(),
        };
        servers.apply_changes(Time::ZERO);
        servers
    }

    /// Gives free workers to waiting requests, and updates the rate of progress.
    fn assign(&mut self) {
        let all = self.description.discipline == Discipline::Shared;
        while (all || self.served < self.workers) && self.waiting > 0 {
            let Some((id, serial)) = self.line.pop_front() else { break };
            let state = &mut self.states[id as usize];
            let RequestState::Waits { demand, serial: now } = *state else { continue };
            if now != serial {
                continue;
            }
            let done = self.progress + demand;
            *state = RequestState::Served { begun: self.progress, done, serial };
            self.ends.push(Reverse((done, serial, id)));
            (self.waiting, self.served) = (self.waiting - 1, self.served + 1);
        }
        self.rate = self.rate_now();
    }

    /// Returns the rate of progress of each request in service, where 1 is real time. If workers
    /// are removed while they serve, the remaining workers share the requests.
    fn rate_now(&self) -> f64 {
        let workers = f64::from(self.workers);
        let over = f64::from((self.served + self.waiting).saturating_sub(self.workers));
        let share = if self.served > self.workers { workers / f64::from(self.served) } else { 1.0 };
        self.speed * share / (1.0 + self.description.contention * over)
    }

    /// Returns whether the rate of progress is 1, so that progress equals time without rounding.
    fn at_full_speed(&self) -> bool {
        (self.rate - 1.0).abs() < f64::EPSILON
    }

    fn advance(&mut self, now: Time) {
        let time = now.since(self.now);
        let nanos = time.as_nanos();
        let progress =
            if self.at_full_speed() { nanos } else { (nanos as f64 * self.rate).round() as u64 };
        self.progress += progress;
        self.meters.busy += time * u64::from(self.served.min(self.workers));
        self.meters.waited += time * u64::from(self.inside_without_worker());
        self.meters.manned += time * u64::from(self.workers);
        self.meters.capacity += nanos as f64 * f64::from(self.workers) * self.speed;
        if self.inside_without_worker() > 0 {
            self.meters.stalled += time;
        }
        self.meters.work += nanos as f64 * self.rate * f64::from(self.served);
        self.now = now;
    }

    /// Returns the number of requests inside the application that exceed the number of workers.
    const fn inside_without_worker(&self) -> u32 {
        (self.served + self.waiting).saturating_sub(self.workers)
    }

    /// Returns the final progress and the id of the request that is done next. Drops the entries of
    /// requests that have left. Returns `None` if no request is in service.
    fn next_done(&mut self) -> Option<(u64, u32)> {
        loop {
            let Reverse((done, serial, id)) = *self.ends.peek()?;
            match self.states[id as usize] {
                RequestState::Served { serial: now, .. } if now == serial => {
                    return Some((done, id));
                }
                RequestState::Served { .. }
                | RequestState::Waits { .. }
                | RequestState::Outside => self.ends.pop(),
            };
        }
    }

    fn take(&mut self, id: u32) -> RequestState {
        let Some(state) = self.states.get_mut(id as usize) else { return RequestState::Outside };
        let was = std::mem::replace(state, RequestState::Outside);
        match was {
            RequestState::Served { .. } => self.served -= 1,
            RequestState::Waits { .. } => self.waiting -= 1,
            RequestState::Outside => {}
        }
        was
    }
}

impl Application for Servers {
    fn admit(&mut self, now: Time, id: u32, _class: usize, demand: TimeSpan) {
        self.advance(now);
        self.serial += 1;
        let index = id as usize;
        if index >= self.states.len() {
            self.states.resize(index + 1, RequestState::Outside);
        }
        self.states[index] = RequestState::Waits { demand: demand.as_nanos(), serial: self.serial };
        self.waiting += 1;
        self.line.push_back((id, self.serial));
        self.assign();
    }

    fn remove(&mut self, now: Time, id: u32) -> TimeSpan {
        self.advance(now);
        let done = match self.take(id) {
            RequestState::Served { begun, .. } => TimeSpan::from_nanos(self.progress - begun),
            RequestState::Waits { .. } | RequestState::Outside => TimeSpan::ZERO,
        };
        self.assign();
        done
    }

    fn next_end(&mut self) -> Option<Time> {
        let done = self.next_done()?.0;
        let left = done.saturating_sub(self.progress);
        let time =
            if self.at_full_speed() { left } else { (left as f64 / self.rate).ceil() as u64 };
        Some(self.now + TimeSpan::from_nanos(time))
    }

    fn finish(&mut self, now: Time) -> Option<u32> {
        self.advance(now);
        let (done, id) = self.next_done()?;
        // Progress is rounded to nanoseconds, and may be too low by one.
        self.progress = self.progress.max(done);
        self.take(id);
        self.ends.pop();
        self.assign();
        Some(id)
    }

    fn is_in_service(&self, id: u32) -> bool {
        matches!(self.states.get(id as usize), Some(RequestState::Served { .. }))
    }

    fn apply_changes(&mut self, now: Time) -> Option<Time> {
        /// The time step in which a gradual change of the servers is simulated.
        const STEP: TimeSpan = TimeSpan::from_millis(250);
        self.advance(now);
        self.workers = self.description.workers_at(self.first, now);
        self.speed = self.description.speed_at(now);
        self.assign();
        let next = |change: &bywash_scenario::Change| {
            let (from, to) = (Time::ZERO + change.at, Time::ZERO + change.at + change.over);
            if now < from { Some(from) } else { (now < to).then(|| to.min(now + STEP)) }
        };
        self.description.changes.iter().filter_map(next).min()
    }

    fn meters(&mut self, now: Time) -> Meters {
        self.advance(now);
        self.meters
    }

    fn workers(&self) -> u32 {
        self.workers
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    const SECOND: TimeSpan = TimeSpan::from_secs(1);

    fn at(seconds: f64) -> Time {
        Time::ZERO + TimeSpan::from_secs_f64(seconds)
    }

    /// Returns a simulated application with two workers and the settings in `servers`, the lines of
    /// the table `[servers]`.
    fn servers(servers: &str) -> Servers {
        let text = format!(
            r#"
            name = "two"
            servers = {{ workers = 2, {servers} }}
            session = {{ start = "all", order = "all" }}
            arrivals = {{ shape = "poisson" }}
            run = {{ rho = [1], duration = "1s" }}
            [[class]]
            name = "all"
            request = "GET /"
            tier = "browsing"
            utility = 1
            service = {{ mean = "1s", shape = "constant" }}
            [client]
            think = {{ mean = "1s", shape = "constant" }}
            patience = {{ shape = "none" }}
            "#
        );
        let scenario = bywash_scenario::Scenario::parse(&text, Path::new(".")).unwrap();
        Servers::new(&scenario.servers, scenario.workers)
    }

    /// Serves all requests. Returns the id of each request with the time of its end in seconds, in
    /// the order of the ends.
    fn play(servers: &mut Servers) -> Vec<(u32, f64)> {
        let mut ends = Vec::new();
        while let Some(next) = servers.next_end() {
            ends.push((servers.finish(next).unwrap(), next.as_secs_f64()));
        }
        ends
    }

    fn assert_ends(ends: &[(u32, f64)], expected: &[(u32, f64)]) {
        let near = |(a, b): (&(u32, f64), &(u32, f64))| a.0 == b.0 && (a.1 - b.1).abs() < 1e-6;
        assert!(ends.len() == expected.len() && ends.iter().zip(expected).all(near), "{ends:?}");
    }

    #[test]
    fn who_has_no_worker_waits_inside_for_its_turn() {
        let mut servers = servers("discipline = 'fifo'");
        (0..4).for_each(|id| servers.admit(at(0.0), id, 0, SECOND * (u64::from(id) + 1)));
        assert!(servers.is_in_service(1) && !servers.is_in_service(2));
        assert_ends(&play(&mut servers), &[(0, 1.0), (1, 2.0), (2, 4.0), (3, 6.0)]);
        let meters = servers.meters(at(6.0));
        assert_eq!((meters.busy, meters.waited), (SECOND * 10, SECOND * 3));
        assert!((meters.work - 1e10).abs() < 10.0, "{meters:?}");
    }

    #[test]
    fn who_shares_is_slowed_down_by_the_others() {
        let mut servers = servers("discipline = 'shared'");
        (0..4).for_each(|id| servers.admit(at(0.0), id, 0, SECOND));
        assert!((0..4).all(|id| servers.is_in_service(id)));
        assert_ends(&play(&mut servers), &[(0, 2.0), (1, 2.0), (2, 2.0), (3, 2.0)]);
    }

    #[test]
    fn whoever_leaves_makes_room_and_its_work_is_known() {
        let mut servers = servers("discipline = 'fifo'");
        (0..4).for_each(|id| servers.admit(at(0.0), id, 0, SECOND));
        assert_eq!(servers.remove(at(0.25), 2), TimeSpan::ZERO, "it only waited");
        assert_eq!(servers.remove(at(0.5), 0), SECOND / 2);
        assert_ends(&play(&mut servers), &[(1, 1.0), (3, 1.5)]);
        servers.admit(at(2.0), 0, 0, SECOND);
        assert_ends(&play(&mut servers), &[(0, 3.0)]);
    }

    #[test]
    fn each_request_above_the_workers_costs_capacity() {
        let mut servers = servers("contention = 0.5");
        (0..4).for_each(|id| servers.admit(at(0.0), id, 0, SECOND));
        // Each request runs at half the speed while there are two requests more than workers, and
        // at two thirds of the speed while there is one more.
        assert_ends(&play(&mut servers), &[(0, 2.0), (1, 2.0), (2, 3.0), (3, 3.0)]);
    }

    #[test]
    fn a_change_of_workers_or_speed_takes_effect_on_those_inside() {
        let changes = "change = [{ at = '1s', workers = 1 }, { at = '2s', speed = 2.0 }]";
        let mut servers = servers(changes);
        (0..2).for_each(|id| servers.admit(at(0.0), id, 0, SECOND * 3));
        assert_eq!(servers.apply_changes(at(0.0)), Some(at(1.0)));
        assert_eq!(servers.apply_changes(at(1.0)), Some(at(2.0)));
        assert_eq!(servers.apply_changes(at(2.0)), None);
        // Each request first works one second at full speed. Half a second of work follows at half
        // speed, then the rest at full speed again.
        assert_ends(&play(&mut servers), &[(0, 3.5), (1, 3.5)]);
    }
}
