//! The table of the requests of a pool: which wait, on how many threads each runs, and which want
//! more.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use bywash_units::{Time, TimeSpan};

use super::{Grant, Level, LevelId};

/// The number of a request of a pool, from its arrival until it ends or leaves. After that the
/// number is used for another request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket(u32);

impl Ticket {
    /// Returns the number of the request as an array index. The index is lower than the largest
    /// number of requests that the pool has had at one time.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// The record of a request that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Occupant {
    /// The request's level.
    pub level: LevelId,
    /// The time from the request's arrival to its first slot.
    pub waited: TimeSpan,
    /// The time from the request's arrival to its end.
    pub response: TimeSpan,
}

#[derive(Debug)]
struct Entry {
    level: LevelId,
    arrived: Time,
    begun: Time,
    threads: u32,
    /// The number of further threads that the request has work for, beyond those that it has.
    wants: u32,
}

#[derive(Debug, Default)]
struct Members {
    waiting: VecDeque<Ticket>,
    /// The running requests of the level, oldest first.
    running: Vec<Ticket>,
    threads: u32,
}

#[derive(Debug)]
pub(super) struct Table {
    entries: Vec<Entry>,
    vacant: Vec<Ticket>,
    levels: Vec<Members>,
}

impl Table {
    pub(super) fn new(levels: usize) -> Self {
        let levels = (0..levels).map(|_| Members::default()).collect();
        Self { entries: Vec::new(), vacant: Vec::new(), levels }
    }

    pub(super) fn arrive(&mut self, now: Time, level: LevelId) -> Ticket {
        let entry = Entry { level, arrived: now, begun: now, threads: 0, wants: 0 };
        let ticket = if let Some(ticket) = self.vacant.pop() {
            self.entries[ticket.0 as usize] = entry;
            ticket
        } else {
            self.entries.push(entry);
            Ticket(self.entries.len() as u32 - 1)
        };
        self.levels[level.0].waiting.push_back(ticket);
        ticket
    }

    pub(super) fn leave(&mut self, ticket: Ticket) {
        let level = self.level(ticket);
        let waiting = &mut self.levels[level.0].waiting;
        if let Some(index) = waiting.iter().position(|one| *one == ticket) {
            waiting.remove(index);
            self.vacant.push(ticket);
        }
    }

    pub(super) fn want(&mut self, ticket: Ticket, more: u32) {
        self.entries[ticket.0 as usize].wants = more;
    }

    pub(super) fn begin(&mut self, now: Time, ticket: Ticket) {
        let level = self.level(ticket);
        let members = &mut self.levels[level.0];
        let first = members.waiting.pop_front();
        debug_assert_eq!(first, Some(ticket), "the oldest begins");
        members.running.push(ticket);
        self.entries[ticket.0 as usize].begun = now;
        self.add_thread(ticket);
    }

    pub(super) fn widen(&mut self, ticket: Ticket) {
        let entry = &mut self.entries[ticket.0 as usize];
        entry.wants = entry.wants.saturating_sub(1);
        self.add_thread(ticket);
    }

    fn add_thread(&mut self, ticket: Ticket) {
        self.entries[ticket.0 as usize].threads += 1;
        let level = self.level(ticket);
        self.levels[level.0].threads += 1;
    }

    /// Takes one thread from a running request. Returns its level.
    pub(super) fn narrow(&mut self, ticket: Ticket) -> LevelId {
        let level = self.level(ticket);
        self.entries[ticket.0 as usize].threads -= 1;
        self.levels[level.0].threads -= 1;
        level
    }

    pub(super) fn end(&mut self, now: Time, ticket: Ticket) -> Occupant {
        let entry = &self.entries[ticket.0 as usize];
        let ended = Occupant {
            level: entry.level,
            waited: entry.begun.since(entry.arrived),
            response: now.since(entry.arrived),
        };
        self.levels[ended.level.0].running.retain(|one| *one != ticket);
        self.vacant.push(ticket);
        ended
    }

    /// Returns the grant for the request that is next in a level; `None` if the level wants no
    /// slot.
    pub(super) fn candidate(&self, id: LevelId, level: &Level) -> Option<Grant> {
        let begin = || self.first(id).map(Grant::Begin);
        let narrow = self.wanting(id, level.min_threads);
        narrow.or_else(begin).or_else(|| self.wanting(id, level.max_threads))
    }

    /// Returns a grant of another thread to a running request of a level. The request is the oldest
    /// one that wants a thread and has fewer than `most` threads. Returns `None` if there is none.
    pub(super) fn wanting(&self, level: LevelId, most: u32) -> Option<Grant> {
        let wants = |ticket: &&Ticket| {
            let entry = &self.entries[ticket.0 as usize];
            entry.wants > 0 && entry.threads < most
        };
        self.levels[level.0].running.iter().find(wants).map(|ticket| Grant::Widen(*ticket))
    }

    /// Returns the oldest request of a level that waits to begin; `None` if none waits.
    pub(super) fn first(&self, level: LevelId) -> Option<Ticket> {
        self.levels[level.0].waiting.front().copied()
    }

    pub(super) fn age(&self, now: Time, ticket: Ticket) -> TimeSpan {
        now.since(self.entries[ticket.0 as usize].arrived)
    }

    /// Returns the number of requests of a level that wait to begin and are older than `age`.
    pub(super) fn overdue(&self, now: Time, level: LevelId, age: TimeSpan) -> u32 {
        let waiting = &self.levels[level.0].waiting;
        waiting.partition_point(|ticket| self.age(now, *ticket) > age) as u32
    }

    /// Returns whether a level has any request, waiting or running.
    pub(super) fn busy(&self, level: LevelId) -> bool {
        self.waiting(level) + self.running(level) > 0
    }

    pub(super) fn waiting(&self, level: LevelId) -> usize {
        self.levels[level.0].waiting.len()
    }

    pub(super) fn running(&self, level: LevelId) -> usize {
        self.levels[level.0].running.len()
    }

    pub(super) fn threads(&self, level: LevelId) -> u32 {
        self.levels[level.0].threads
    }

    pub(super) fn level(&self, ticket: Ticket) -> LevelId {
        self.entries[ticket.0 as usize].level
    }
}
