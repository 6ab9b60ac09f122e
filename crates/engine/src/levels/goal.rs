//! The goals for response times, and how far they are reached.

use core::fmt;

use bywash_units::{Time, TimeSpan};

use super::percentile::Percentile;
use super::ratio::Ratio;
use super::table::{Occupant, Table, Ticket};
use super::{Grant, Level, LevelId};

/// A goal for the response times of a level.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Goal {
    /// The mean response time of one level shall be a given fraction of that of another level.
    Ratio {
        /// The level that is to be faster.
        fast: LevelId,
        /// The level with which `fast` is compared.
        slow: LevelId,
        /// The wanted mean response time of `fast`, divided by that of `slow`; above 0 and at most
        /// 1.
        target: f64,
    },
    /// A given share of a level's requests shall be answered within a time.
    Percentile {
        /// The level whose requests count.
        level: LevelId,
        /// The share of the requests, 0.5 to 0.999: 0.95 for the 95th percentile.
        share: f64,
        /// The maximum response time, from a request's arrival to its end.
        within: TimeSpan,
    },
}

/// The measured state of a goal: how far it is reached at present.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GoalState {
    /// Whether the goal is reached.
    pub verdict: Verdict,
    /// The last measurement: the ratio, or the share of requests that was answered within the time.
    /// `None` while there were too few requests.
    pub measured: Option<f64>,
    /// The controller's output. For a ratio it is the weight of the faster level's age. For a
    /// percentile it is the number of seconds for which the level's requests may wait while others
    /// want slots.
    pub effort: f64,
}

/// The verdict on whether a goal is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// No verdict yet: no request has been measured, or the controller has not settled.
    Settling,
    /// The goal is reached, to within a tenth.
    Held,
    /// The goal is surpassed, because slots are free and the goal makes no request wait.
    Exceeded,
    /// The goal is not reached, although the controller is at its limit.
    Infeasible,
}

/// The reason for which settings are invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GoalFault {
    /// The pool has no slots or no levels.
    Empty,
    /// The minimum number of threads of a level is zero, above the maximum, or above the number of
    /// slots.
    Threads(LevelId),
    /// The weight of a level is not a number above 0.
    Weight(LevelId),
    /// The floor of a level is not between 0 and 1, or the sum of all floors is too large.
    Floor(LevelId),
    /// The goal names a level that is not in the list.
    UnknownLevel(LevelId),
    /// The goal compares a level with itself.
    SameLevel(LevelId),
    /// The target of [`Goal::Ratio`] is not above 0 and at most 1.
    Target,
    /// The share of requests in [`Goal::Percentile`] is below 0.5 or above 0.999.
    Ratio,
    /// The time in [`Goal::Percentile`] is zero.
    Within,
}

impl GoalFault {
    /// Returns the level that the fault is about; `None` if it is about no level.
    pub const fn level(self) -> Option<LevelId> {
        match self {
            Self::Threads(level)
            | Self::Weight(level)
            | Self::Floor(level)
            | Self::UnknownLevel(level)
            | Self::SameLevel(level) => Some(level),
            Self::Empty | Self::Target | Self::Ratio | Self::Within => None,
        }
    }
}

impl fmt::Display for GoalFault {
    /// Describes the fault without naming the level, because this crate knows no names of levels.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Empty => "a pool needs at least one thread and one level",
            Self::Threads(_) => "threads must be 1 ≤ least ≤ most, and least ≤ the pool's",
            Self::Weight(_) => "the weight must be a number above 0",
            Self::Floor(_) => "floors are from 0 to 1, and together at most 0.9",
            Self::UnknownLevel(_) => "the goal names a level that the pool does not have",
            Self::SameLevel(_) => "the goal compares the level with itself",
            Self::Target => "the goal's ratio must be above 0 and at most 1",
            Self::Ratio => "the goal's share of requests must be from 0.5 to 0.999",
            Self::Within => "the goal's time must be above 0",
        })
    }
}

impl core::error::Error for GoalFault {}

/// The maximum sum of all floors. Weights and goals decide about the rest of the slot time.
const MAX_FLOOR_SUM: f64 = 0.9;

pub(super) fn fault(slots: u32, levels: &[Level], goal: Option<Goal>) -> Option<GoalFault> {
    if slots == 0 || levels.is_empty() {
        return Some(GoalFault::Empty);
    }
    let mut floors = 0.0;
    for (index, level) in levels.iter().enumerate() {
        let id = LevelId(index);
        if level.min_threads == 0 || level.min_threads > level.max_threads.min(slots) {
            return Some(GoalFault::Threads(id));
        }
        if !(level.weight.is_finite() && level.weight > 0.0) {
            return Some(GoalFault::Weight(id));
        }
        floors += level.floor;
        if !(0.0..=1.0).contains(&level.floor) || floors > MAX_FLOOR_SUM {
            return Some(GoalFault::Floor(id));
        }
    }
    goal.and_then(|goal| of_goal(levels.len(), goal))
}

fn of_goal(levels: usize, goal: Goal) -> Option<GoalFault> {
    let unknown = |level: LevelId| (level.0 >= levels).then_some(GoalFault::UnknownLevel(level));
    match goal {
        Goal::Ratio { fast, slow, target } => {
            let same = (fast == slow).then_some(GoalFault::SameLevel(fast));
            let target = (!(target > 0.0 && target <= 1.0)).then_some(GoalFault::Target);
            unknown(fast).or(unknown(slow)).or(same).or(target)
        }
        Goal::Percentile { level, share, within } => {
            let share = (!(0.5..=0.999).contains(&share)).then_some(GoalFault::Ratio);
            let within = (within == TimeSpan::ZERO).then_some(GoalFault::Within);
            unknown(level).or(share).or(within)
        }
    }
}

/// The controller that keeps a goal, with its state.
#[derive(Debug)]
pub(super) enum Controller {
    None,
    Ratio(Ratio),
    Percentile(Percentile),
}

impl Controller {
    pub(super) fn new(goal: Option<Goal>) -> Self {
        match goal {
            None => Self::None,
            Some(Goal::Ratio { fast, slow, target }) => Self::Ratio(Ratio::new(fast, slow, target)),
            Some(Goal::Percentile { level, share, within }) => {
                Self::Percentile(Percentile::new(level, share, within))
            }
        }
    }

    /// Returns the candidate for a slot that the goal prefers among two or more. Returns `None` if
    /// the goal has no preference.
    pub(super) fn prefers<'w>(
        &mut self,
        candidates: &'w [(LevelId, Grant)],
        age: impl Fn(Ticket) -> TimeSpan,
    ) -> Option<&'w (LevelId, Grant)> {
        match self {
            Self::None => None,
            Self::Ratio(ratio) => ratio.prefers(candidates, age),
            Self::Percentile(percentile) => percentile.prefers(candidates, age),
        }
    }

    /// Measures a request that has ended.
    pub(super) fn ended(&mut self, now: Time, ended: &Occupant) {
        match self {
            Self::None => {}
            Self::Ratio(ratio) => ratio.ended(now, ended),
            Self::Percentile(percentile) => percentile.ended(now, ended),
        }
    }

    pub(super) fn standing(&self, now: Time, table: &Table) -> Option<GoalState> {
        match self {
            Self::None => None,
            Self::Ratio(ratio) => Some(ratio.standing(now)),
            Self::Percentile(percentile) => Some(percentile.standing(now, table)),
        }
    }
}
