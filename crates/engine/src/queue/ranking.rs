//! The part of a ranked scheduler in which policies differ.

use alloc::vec::Vec;

use super::{SchedulerSettings, Waiting};
use crate::value::Values;

/// The part of a ranked scheduler that a policy decides: the cell of each request, and how cells
/// rank.
pub(super) trait Ranking: Send {
    /// Returns the number of cells of the policy.
    fn cells(&self) -> usize;

    /// Returns the cell of a waiting request, whose population has the level `level`. `last` says
    /// that the request ranks below first attempts, because it is a retry. All requests of one cell
    /// have the same standing and group.
    fn cell(&self, waiting: &Waiting, level: usize, last: bool) -> usize;

    /// Returns the group of a waiting request, below [`GROUPS`](crate::overload::GROUPS). Overload
    /// and long waits are judged for each group. Better groups have lower numbers.
    fn group(&self, waiting: &Waiting) -> usize {
        waiting.standing.index()
    }

    /// Returns the cells, best first, if their ranks have changed since the last call; otherwise
    /// `None`.
    fn order(&mut self, values: &Values) -> Option<Ranks>;
}

/// The new ranks of the cells.
pub(super) struct Ranks {
    /// The numbers of the cells, best first.
    pub(super) cells: Vec<u32>,
    /// Whether waiting requests may belong to other cells than before.
    pub(super) regrouped: bool,
}

/// The kinds of repetitions that rank below first attempts.
#[derive(Clone, Copy, Debug)]
pub(super) enum Retries {
    Declared,
    All,
    None,
}

impl Retries {
    /// Reads the parameter `retries` of the settings.
    pub(super) fn new(settings: &SchedulerSettings) -> Self {
        match settings.choice("retries") {
            "all" => Self::All,
            "none" => Self::None,
            _ => Self::Declared,
        }
    }
}
