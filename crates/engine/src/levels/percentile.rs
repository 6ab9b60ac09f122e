//! The controller for a goal for a percentile of one level's response times.
//!
//! The level's requests may wait for as long as the goal allows, and not longer. A request that is
//! older than the *allowance* is due, and goes before all requests of other levels. Before that it
//! takes its turn by weight. So the goal is met without a correction when the load jumps: requests
//! are due as soon as they are old, however many there are.
//!
//! The allowance is learned by the stochastic approximation of Robbins and Monro (1951). It falls
//! by [`GAIN`] · share of the goal's time with each answer that took too long. It rises by [`GAIN`]
//! · (1 − share) of that time with each answer that did not. So it settles where exactly the
//! fraction (1 − share) takes too long. It rises only with answers of requests that waited for at
//! least half of it. Other answers say nothing about the effect of a longer wait. If they counted,
//! the allowance would rise slowly while slots are free, and be too long when load arrives.
//!
//! The goal is *infeasible* when more answers take too long than may, beyond chance (two standard
//! deviations), although the allowance is zero. Either the level's own load is more than its share
//! of the pool, or a single request takes too long. A request that still waits and is already too
//! old counts as answered too late.

use alloc::collections::VecDeque;

use bywash_units::{Time, TimeSpan};

use super::goal::{GoalState, Verdict};
use super::table::{Occupant, Table, Ticket};
use super::{Grant, LevelId};

/// The maximum change of the allowance by one answer, as a fraction of the goal's time.
const GAIN: f64 = 0.05;
/// The number of blocks of time in which answers are counted. The oldest block is dropped when a
/// new one begins.
const BLOCKS: usize = 4;
/// The length of one block.
const BLOCK: TimeSpan = TimeSpan::from_millis(250);
/// The minimum number of answers for a verdict. If the blocks hold fewer, the last answers up to
/// this number are counted instead.
const LEAST: u32 = 20;
/// The age above which an answer no longer counts. With fewer than four answers a second there is
/// therefore no verdict.
const STALE: TimeSpan = TimeSpan::from_secs(5);

#[derive(Clone, Copy, Debug, Default)]
struct Block {
    number: u64,
    answered: u32,
    late: u32,
}

#[derive(Debug)]
pub(super) struct Percentile {
    level: LevelId,
    share: f64,
    within: TimeSpan,
    /// The present allowance, in seconds.
    allowance: f64,
    blocks: [Block; BLOCKS],
    /// The last answers: the time of each, and whether it was late.
    latest: VecDeque<(Time, bool)>,
}

impl Percentile {
    pub(super) fn new(level: LevelId, share: f64, within: TimeSpan) -> Self {
        let (blocks, latest) =
            ([Block::default(); BLOCKS], VecDeque::with_capacity(LEAST as usize));
        Self { level, share, within, allowance: 0.0, blocks, latest }
    }

    pub(super) fn prefers<'w>(
        &self,
        candidates: &'w [(LevelId, Grant)],
        age: impl Fn(Ticket) -> TimeSpan,
    ) -> Option<&'w (LevelId, Grant)> {
        let due = |candidate: &&(LevelId, Grant)| {
            candidate.0 == self.level && age(candidate.1.ticket()).as_secs_f64() >= self.allowance
        };
        candidates.iter().find(due)
    }

    pub(super) fn ended(&mut self, now: Time, ended: &Occupant) {
        if ended.level != self.level {
            return;
        }
        let late = ended.response > self.within;
        let number = now.as_nanos() / BLOCK.as_nanos();
        let block = &mut self.blocks[number as usize % BLOCKS];
        if block.number != number {
            *block = Block { number, ..Block::default() };
        }
        block.answered += 1;
        block.late += u32::from(late);
        if self.latest.len() == LEAST as usize {
            self.latest.pop_front();
        }
        self.latest.push_back((now, late));
        let most = self.within.as_secs_f64();
        let telling = ended.waited.as_secs_f64() >= self.allowance / 2.0;
        if late {
            self.allowance = (self.allowance - GAIN * self.share * most).max(0.0);
        } else if telling {
            self.allowance = (self.allowance + GAIN * (1.0 - self.share) * most).min(most);
        }
    }

    pub(super) fn standing(&self, now: Time, table: &Table) -> GoalState {
        let number = now.as_nanos() / BLOCK.as_nanos();
        let fresh = |block: &&Block| block.number + BLOCKS as u64 > number;
        let blocks = || self.blocks.iter().filter(fresh);
        let overdue = table.overdue(now, self.level, self.within);
        let mut answered = blocks().map(|block| block.answered).sum::<u32>();
        let mut late = blocks().map(|block| block.late).sum::<u32>();
        if answered + overdue < LEAST {
            let fresh = |answer: &&(Time, bool)| now.since(answer.0) <= STALE;
            let latest = || self.latest.iter().filter(fresh);
            answered = latest().count() as u32;
            late = latest().filter(|(_, late)| *late).count() as u32;
        }
        let (answered, late) = (answered + overdue, late + overdue);
        let (all, misses, most) = (f64::from(answered), f64::from(late), 1.0 - self.share);
        let chance = 2.0 * libm::sqrt(all * most * self.share);
        let verdict = if answered < LEAST {
            Verdict::Settling
        } else if misses <= all * most + chance {
            Verdict::Held
        } else if self.allowance > 0.0 {
            Verdict::Settling
        } else {
            Verdict::Infeasible
        };
        let measured = (answered > 0).then(|| 1.0 - misses / all);
        GoalState { verdict, measured, effort: self.allowance }
    }
}
