//! The scheduler of a thread pool: how many threads each request gets, and which request gets the
//! next one.
//!
//! A pool runs as many threads at a time as there are processors. A *slot* is the permission to run
//! one thread. A request waits for its first slot in the queue of its level. While it runs, it may
//! ask for more slots to run its tasks in parallel, and it gives them back between tasks.
//! [`Levels`] decides which request gets a free slot. Requests that wait to begin compete for slots
//! with running requests that want another thread. So the number of threads is not a property of a
//! level: it depends on the other requests in the pool [paper 3.1].
//!
//! **Between levels.** Without a goal, stride scheduling shares slot time in proportion to weights
//! ([`stride`]). With a goal, its controller decides ([`ratio`] or [`percentile`]). In both cases a
//! level that wants slots gets at least its floor share ([`share`]).
//!
//! **Within a level.** A request that runs on fewer threads than the level's minimum comes first.
//! The oldest request that waits to begin comes next. Only if none waits, the oldest request that
//! wants another thread gets one, up to the level's maximum. So the degree of parallelism falls to
//! the minimum while requests of a level queue. To split one of them would not make the others
//! finish sooner.
//!
//! **Parity** ([`Levels::parity`]): as in the paper. A fixed number of requests runs at a time,
//! first come, first served, whatever their levels. Each has the threads of its level immediately,
//! and the operating system shares the processors among the threads.
//!
//! No slot is left idle that a request could use. So the pool slows a level down for a goal only
//! while requests compete for slots. If slots are free, both levels may be faster than the goal
//! asks.
//!
//! Source: paper 3 (levels of service by numbers of threads); Waldspurger and Weihl, "Stride
//! Scheduling", MIT/LCS/TM-528, 1995; Dovrolis, Stiliadis, Ramanathan, "Proportional Differentiated
//! Services", SIGCOMM 1999 (waiting time priority).

mod goal;
mod percentile;
mod ratio;
mod share;
mod stride;
mod table;
#[cfg(test)]
mod tests;

use alloc::vec::Vec;

use bywash_units::{Time, TimeSpan};

pub use goal::{Goal, GoalFault, GoalState, Verdict};
pub use table::{Occupant, Ticket};

use goal::Controller;
use share::Shares;
use stride::Stride;
use table::Table;

/// The identifier of a level: its index in the list that [`Levels::new`] was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LevelId(pub usize);

/// The settings of one level.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Level {
    /// The maximum number of threads of one request; at least 1.
    pub max_threads: u32,
    /// The number of threads that a request may have even while other requests of its level wait to
    /// begin; at least 1.
    pub min_threads: u32,
    /// The weight of the level, above 0. Without a goal, levels share slot time in proportion to
    /// their weights.
    pub weight: f64,
    /// The minimum share of all slot time, 0 to 1, that the level gets while it wants slots.
    pub floor: f64,
    /// The maximum number of requests of the level that may wait to begin. With 0, a request that
    /// cannot begin immediately is refused.
    pub queue: usize,
}

impl Level {
    /// The default settings: one thread per request, weight 1, a floor of 2 %, and a queue of 1,000
    /// requests.
    pub const PLAIN: Self =
        Self { max_threads: 1, min_threads: 1, weight: 1.0, floor: 0.02, queue: 1000 };
}

/// A slot that was given to a request, and what the request uses it for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grant {
    /// The request begins. The slot is for its own thread.
    Begin(Ticket),
    /// The request already runs. The slot is for another thread of it.
    Widen(Ticket),
}

/// The error that a request is refused because the queue of its level is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full;

/// The current state of one level.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Load {
    /// The number of requests of the level that wait to begin.
    pub waiting: usize,
    /// The number of requests of the level that have begun and not ended.
    pub running: usize,
    /// The total number of slots that the running requests of the level hold.
    pub threads: u32,
    /// The level's share, 0 to 1, of the slot time that all levels used recently.
    pub share: f64,
}

/// The resource that limits how many requests run.
#[derive(Clone, Copy, Debug)]
enum Admission {
    /// Slots, one per thread. The value is the number of free slots.
    Slots(u32),
    /// Places, one per request (parity). The value is the number of requests that may run; their
    /// threads are not counted.
    Places(u32),
}

/// The scheduler of a pool's slots; see the module documentation.
#[derive(Debug)]
pub struct Levels {
    admission: Admission,
    /// The settings of each level.
    settings: Vec<Level>,
    table: Table,
    stride: Stride,
    shares: Shares,
    controller: Controller,
    /// The candidates for the next slot, one per level that wants it. The list is kept between
    /// calls to reuse its allocation.
    candidates: Vec<(LevelId, Grant)>,
}

impl Levels {
    /// Creates the scheduler of a pool with this number of slots.
    ///
    /// # Panics
    ///
    /// Panics if there are no slots or levels, or if the settings of a level or the goal are
    /// invalid. Check settings from a user with [`Levels::fault`] first.
    pub fn new(slots: u32, levels: Vec<Level>, goal: Option<Goal>) -> Self {
        assert!(Self::fault(slots, &levels, goal).is_none(), "the pool's settings were checked");
        Self::with(Admission::Slots(slots), levels, goal)
    }

    /// Creates the scheduler of a pool under parity, as in the paper: at most `places` requests run
    /// at a time, and each has the threads of its level.
    ///
    /// # Panics
    ///
    /// Panics if there are no places or levels, or if the settings of a level are invalid.
    pub fn parity(places: u32, levels: Vec<Level>) -> Self {
        assert!(Self::fault(places, &levels, None).is_none(), "the pool's settings were checked");
        Self::with(Admission::Places(places), levels, None)
    }

    fn with(admission: Admission, levels: Vec<Level>, goal: Option<Goal>) -> Self {
        Self {
            admission,
            table: Table::new(levels.len()),
            stride: Stride::new(levels.iter().map(|level| level.weight)),
            shares: Shares::new(levels.iter().map(|level| level.floor)),
            controller: Controller::new(goal),
            candidates: Vec::with_capacity(levels.len()),
            settings: levels,
        }
    }

    /// Returns the first fault of the given settings; `None` if they are valid.
    pub fn fault(slots: u32, levels: &[Level], goal: Option<Goal>) -> Option<GoalFault> {
        goal::fault(slots, levels, goal)
    }

    /// Adds a request to the queue of its level. The request waits until [`Levels::grant`] returns
    /// its ticket. Fails if the queue of the level is full.
    pub fn arrive(&mut self, now: Time, level: LevelId) -> Result<Ticket, Full> {
        let queue = self.settings[level.0].queue;
        if self.table.waiting(level) >= queue && (queue > 0 || !self.has_room()) {
            return Err(Full);
        }
        if !self.table.busy(level) {
            self.stride.wake(level);
        }
        Ok(self.table.arrive(now, level))
    }

    /// Removes a request that waits to begin, because it no longer wants to.
    pub fn leave(&mut self, ticket: Ticket) {
        self.table.leave(ticket);
    }

    /// Sets the number of further threads that a running request has work for, beyond those that it
    /// has.
    pub fn want(&mut self, ticket: Ticket, more: u32) {
        self.table.want(ticket, more);
    }

    /// Gives a free slot to the request that is next; `None` if no slot is free or no request wants
    /// one. Call this until it returns `None`, whenever a slot has become free or a request wants
    /// one.
    pub fn grant(&mut self, now: Time) -> Option<Grant> {
        let grant = match self.admission {
            Admission::Slots(0) => return None,
            Admission::Slots(free) => {
                let (level, grant) = self.chosen(now)?;
                self.admission = Admission::Slots(free - 1);
                let expected = self.stride.charge(level);
                self.shares.used(now, level, expected);
                grant
            }
            Admission::Places(places) => self.next_in_line(now, places)?,
        };
        match grant {
            Grant::Begin(ticket) => self.table.begin(now, ticket),
            Grant::Widen(ticket) => self.table.widen(ticket),
        }
        Some(grant)
    }

    /// Returns whether some request would get a slot that became free now. A thread between two
    /// tasks should then give its slot back and ask again. Under parity the result is always false.
    pub fn pressed(&self) -> bool {
        let wants = |(index, level): (usize, &Level)| self.table.candidate(LevelId(index), level);
        let scarce = matches!(self.admission, Admission::Slots(_));
        scarce && self.settings.iter().enumerate().any(|each| wants(each).is_some())
    }

    /// Takes back a slot of a running request. `used` is the time for which the request held the
    /// slot.
    pub fn release(&mut self, now: Time, ticket: Ticket, used: TimeSpan) {
        let level = self.table.narrow(ticket);
        if let Admission::Slots(free) = &mut self.admission {
            *free += 1;
        }
        let more = self.stride.settle(level, used);
        self.shares.used(now, level, more);
    }

    /// Notes that a thread of a running request hands its slot over to another thread of the same
    /// request. `used` is the time for which the first thread used the slot.
    pub fn hand_over(&mut self, now: Time, ticket: Ticket, used: TimeSpan) {
        let level = self.table.level(ticket);
        let more = self.stride.settle(level, used) + self.stride.charge(level);
        self.shares.used(now, level, more);
    }

    /// Removes a running request that has ended and has given all its slots back. Returns its
    /// record.
    pub fn end(&mut self, now: Time, ticket: Ticket) -> Occupant {
        let ended = self.table.end(now, ticket);
        self.controller.ended(now, &ended);
        ended
    }

    /// Returns how far the goal is reached; `None` if the pool has no goal.
    pub fn standing(&self, now: Time) -> Option<GoalState> {
        self.controller.standing(now, &self.table)
    }

    /// Returns the current state of a level: its requests, slots and share of slot time.
    pub fn load(&self, level: LevelId) -> Load {
        Load {
            waiting: self.table.waiting(level),
            running: self.table.running(level),
            threads: self.table.threads(level),
            share: self.shares.of(level),
        }
    }

    /// Returns whether a slot, or a place under parity, is free. A request that arrives then begins
    /// immediately.
    fn has_room(&self) -> bool {
        match self.admission {
            Admission::Slots(free) => free > 0,
            Admission::Places(places) => self.running() < places as usize,
        }
    }

    fn running(&self) -> usize {
        (0..self.settings.len()).map(|level| self.table.running(LevelId(level))).sum()
    }

    /// Returns the level that gets the next slot, and the grant for its request; `None` if no level
    /// wants a slot.
    fn chosen(&mut self, now: Time) -> Option<(LevelId, Grant)> {
        let candidate = |index: usize| {
            let level = LevelId(index);
            self.table.candidate(level, &self.settings[index]).map(|grant| (level, grant))
        };
        self.candidates.clear();
        self.candidates.extend((0..self.settings.len()).filter_map(candidate));
        if self.candidates.len() < 2 {
            return self.candidates.first().copied();
        }
        let age = |ticket: Ticket| self.table.age(now, ticket);
        let starved = self.candidates.iter().find(|(level, _)| self.shares.starved(*level));
        let by_goal = self.controller.prefers(&self.candidates, age);
        let by_stride = || self.candidates.iter().min_by(|a, b| self.stride.before(a.0, b.0));
        starved.or(by_goal).or_else(by_stride).copied()
    }

    /// Returns the next grant under parity. A running request that wants another thread comes
    /// first, then the request that arrived first, if a place is free.
    fn next_in_line(&self, now: Time, places: u32) -> Option<Grant> {
        let levels = || (0..self.settings.len()).map(LevelId);
        let wider = |level: LevelId| self.table.wanting(level, self.settings[level.0].max_threads);
        let first = || {
            let first = levels().filter_map(|level| self.table.first(level));
            first.max_by_key(|ticket| self.table.age(now, *ticket)).map(Grant::Begin)
        };
        levels().find_map(wider).or_else(|| first().filter(|_| self.running() < places as usize))
    }
}

impl Grant {
    /// Returns the request that got the slot.
    pub const fn ticket(self) -> Ticket {
        match self {
            Self::Begin(ticket) | Self::Widen(ticket) => ticket,
        }
    }
}
