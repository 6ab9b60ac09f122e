//! How many threads a request gets, and which request gets the next one.
//!
//! A pool runs as many threads at a time as there are processors. Permission to run one is a *slot*. A request waits
//! for its first slot in its level's queue; while it runs, it may ask for more, so that its tasks run side by side; it
//! gives them back between tasks. [`Levels`] decides who gets a slot that is free. Requests that wait to begin and
//! running ones that want another thread compete for the same slots, so the number of threads is no property of a
//! level, but comes of what else there is to do [seed 3.1].
//!
//! **Between levels.** Without a goal by stride scheduling ([`stride`]): slot time in proportion to weights. With a
//! goal, by what it takes to reach it: [`ratio`] or [`percentile`]. In all cases no level that wants slots gets less
//! than its floor share ([`share`]).
//!
//! **Within a level.** First whoever runs on fewer threads than the level's least; then the oldest who waits to begin;
//! and only when nobody waits the oldest who wants another thread, up to the level's most. So the degree of
//! parallelism collapses to the least when a level's requests queue: splitting one of them would not make the others
//! come sooner.
//!
//! **Parity** ([`Levels::parity`]): as in the seed. So many requests run at a time, first come first served whatever
//! their level; each has the threads of its level at once, and the operating system shares the processors.
//!
//! Nothing is ever left idle that somebody could use. A goal is therefore reached from above only as far as there is
//! competition: where slots are free, both levels may do better than asked.
//!
//! Source: seed 3 (levels of service by numbers of threads); Waldspurger and Weihl, "Stride Scheduling", MIT/LCS/TM-528,
//! 1995; Dovrolis, Stiliadis, Ramanathan, "Proportional Differentiated Services", SIGCOMM 1999 (waiting time priority).

mod goal;
mod percentile;
mod ratio;
mod share;
mod stride;
mod table;
#[cfg(test)]
mod tests;

use alloc::vec::Vec;

use bywash_units::{Span, Time};

pub use goal::{Goal, GoalFault, Standing, Verdict};
pub use table::{Occupant, Ticket};

use goal::Controller;
use share::Shares;
use stride::Stride;
use table::Table;

/// A level, by its place in the list that [`Levels::new`] was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LevelId(pub usize);

/// What a level is granted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Level {
    /// Threads that a request may have at most; at least 1.
    pub max_threads: u32,
    /// Threads that a request may have although others of its level wait to begin; at least 1.
    pub min_threads: u32,
    /// Slot time in proportion to those of other levels, where no goal says otherwise; above 0.
    pub weight: f64,
    /// The share of slot time, 0 to 1, below which the level is not pressed while it wants slots.
    pub floor: f64,
    /// Requests that may wait to begin. With 0 who cannot begin at once is refused.
    pub queue: usize,
}

impl Level {
    /// One thread a request, weight 1, a floor of 2 %, a queue of 1,000.
    pub const PLAIN: Self =
        Self { max_threads: 1, min_threads: 1, weight: 1.0, floor: 0.02, queue: 1000 };
}

/// A slot that was given away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grant {
    /// This request begins; the slot is its own thread's.
    Begin(Ticket),
    /// This running request gets another thread.
    Widen(Ticket),
}

/// The level's queue is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full;

/// What a level does at the moment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Load {
    /// Requests that wait to begin.
    pub waiting: usize,
    /// Requests that have begun and not ended.
    pub running: usize,
    /// Slots that they hold.
    pub threads: u32,
    /// Share of the slot time used lately, 0 to 1.
    pub share: f64,
}

/// What is scarce.
#[derive(Clone, Copy, Debug)]
enum Admission {
    /// Threads: so many are free.
    Slots(u32),
    /// Requests: so many may run. Threads are not counted.
    Places(u32),
}

/// Who gets the slots of a pool. See the module.
#[derive(Debug)]
pub struct Levels {
    admission: Admission,
    /// What each level is granted.
    terms: Vec<Level>,
    table: Table,
    stride: Stride,
    shares: Shares,
    controller: Controller,
    /// What each level would use the next slot for: kept for its memory.
    wishes: Vec<(LevelId, Grant)>,
}

impl Levels {
    /// A pool of so many slots.
    ///
    /// # Panics
    ///
    /// If there are no slots or levels, or if a level or the goal contradicts itself: whoever takes them from a user
    /// asks [`Levels::fault`] before.
    pub fn new(slots: u32, levels: Vec<Level>, goal: Option<Goal>) -> Self {
        assert!(Self::fault(slots, &levels, goal).is_none(), "the pool's settings were checked");
        Self::with(Admission::Slots(slots), levels, goal)
    }

    /// The seed's way: so many requests run at a time, and each has its threads.
    ///
    /// # Panics
    ///
    /// As [`Levels::new`].
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
            wishes: Vec::with_capacity(levels.len()),
            terms: levels,
        }
    }

    /// What is wrong with such settings.
    pub fn fault(slots: u32, levels: &[Level], goal: Option<Goal>) -> Option<GoalFault> {
        goal::fault(slots, levels, goal)
    }

    /// A request has come. It waits until [`Levels::grant`] says that it begins.
    pub fn arrive(&mut self, now: Time, level: LevelId) -> Result<Ticket, Full> {
        let queue = self.terms[level.0].queue;
        if self.table.waiting(level) >= queue && (queue > 0 || !self.has_room()) {
            return Err(Full);
        }
        if !self.table.busy(level) {
            self.stride.awake(level);
        }
        Ok(self.table.arrive(now, level))
    }

    /// One that waited to begin does so no more.
    pub fn leave(&mut self, ticket: Ticket) {
        self.table.leave(ticket);
    }

    /// A running request has work for so many threads beside those that it has.
    pub fn want(&mut self, ticket: Ticket, more: u32) {
        self.table.want(ticket, more);
    }

    /// Gives a free slot to whoever deserves it most. To be asked until it says `None`, whenever a slot has come free or
    /// somebody wants one.
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

    /// Whether somebody would get a slot that came free: whether a thread that is between tasks should give its own back
    /// and ask anew.
    pub fn pressed(&self) -> bool {
        let wants = |(index, level): (usize, &Level)| self.table.candidate(LevelId(index), level);
        let scarce = matches!(self.admission, Admission::Slots(_));
        scarce && self.terms.iter().enumerate().any(|each| wants(each).is_some())
    }

    /// A running request gives back a slot that it has used for so long.
    pub fn release(&mut self, now: Time, ticket: Ticket, used: Span) {
        let level = self.table.narrow(ticket);
        if let Admission::Slots(free) = &mut self.admission {
            *free += 1;
        }
        let more = self.stride.settle(level, used);
        self.shares.used(now, level, more);
    }

    /// One thread of a running request gives another a slot that it has used for so long.
    pub fn hand_over(&mut self, now: Time, ticket: Ticket, used: Span) {
        let level = self.table.level(ticket);
        let more = self.stride.settle(level, used) + self.stride.charge(level);
        self.shares.used(now, level, more);
    }

    /// A running request is over; it has given back its slots.
    pub fn end(&mut self, now: Time, ticket: Ticket) -> Occupant {
        let ended = self.table.end(now, ticket);
        self.controller.ended(now, &ended);
        ended
    }

    /// How far the goal is reached; `None` if there is none.
    pub fn standing(&self, now: Time) -> Option<Standing> {
        self.controller.standing(now, &self.table)
    }

    /// What a level does.
    pub fn load(&self, level: LevelId) -> Load {
        Load {
            waiting: self.table.waiting(level),
            running: self.table.running(level),
            threads: self.table.threads(level),
            share: self.shares.of(level),
        }
    }

    /// Whether who comes now begins at once: nobody waits while a slot is free.
    fn has_room(&self) -> bool {
        match self.admission {
            Admission::Slots(free) => free > 0,
            Admission::Places(places) => self.running() < places as usize,
        }
    }

    fn running(&self) -> usize {
        (0..self.terms.len()).map(|level| self.table.running(LevelId(level))).sum()
    }

    /// The level that gets the next slot, and what for.
    fn chosen(&mut self, now: Time) -> Option<(LevelId, Grant)> {
        let candidate = |index: usize| {
            let level = LevelId(index);
            self.table.candidate(level, &self.terms[index]).map(|grant| (level, grant))
        };
        self.wishes.clear();
        self.wishes.extend((0..self.terms.len()).filter_map(candidate));
        if self.wishes.len() < 2 {
            return self.wishes.first().copied();
        }
        let age = |ticket: Ticket| self.table.age(now, ticket);
        let starved = self.wishes.iter().find(|(level, _)| self.shares.starved(*level));
        let by_goal = self.controller.prefers(&self.wishes, age);
        let by_stride = || self.wishes.iter().min_by(|a, b| self.stride.before(a.0, b.0));
        starved.or(by_goal).or_else(by_stride).copied()
    }

    /// Where places are scarce: another thread for whoever wants one, or whoever came first.
    fn next_in_line(&self, now: Time, places: u32) -> Option<Grant> {
        let levels = || (0..self.terms.len()).map(LevelId);
        let wider = |level: LevelId| self.table.wanting(level, self.terms[level.0].max_threads);
        let first = || {
            let first = levels().filter_map(|level| self.table.first(level));
            first.max_by_key(|ticket| self.table.age(now, *ticket)).map(Grant::Begin)
        };
        levels().find_map(wider).or_else(|| first().filter(|_| self.running() < places as usize))
    }
}

impl Grant {
    /// Whose slot it is.
    pub const fn ticket(self) -> Ticket {
        match self {
            Self::Begin(ticket) | Self::Widen(ticket) => ticket,
        }
    }
}
