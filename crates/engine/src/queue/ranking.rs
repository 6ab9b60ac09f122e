//! The part of a ranked scheduler that differs between policies.

use alloc::vec::Vec;

use super::{SchedulerSettings, Waiting};
use crate::value::Values;

/// The policy's part: the cell of each request, and how cells rank.
pub(super) trait Ranking: Send {
    /// Returns the number of cells.
    fn cells(&self) -> usize;

    /// Returns the cell of a waiting request. `last`: the request ranks below the first attempts of
    /// its kind. All requests of one cell have the same standing and the same group.
    fn cell(&self, waiting: &Waiting, last: bool) -> usize;

    /// Returns the group whose requests are judged together for overload and for long waits, below
    /// [`GROUPS`](crate::overload::GROUPS). Better groups have lower numbers.
    fn group(&self, waiting: &Waiting) -> usize {
        waiting.standing.index()
    }

    /// Returns the cells, best first, if their ranks have changed since the last call.
    fn order(&mut self, values: &Values) -> Option<Ranks>;
}

/// New ranks of the cells.
pub(super) struct Ranks {
    /// The cells, best first.
    pub(super) cells: Vec<u32>,
    /// Whether requests belong to other cells than before.
    pub(super) regrouped: bool,
}

/// The repetitions that rank below the first attempts of their kind.
#[derive(Clone, Copy, Debug)]
pub(super) enum Retries {
    Declared,
    All,
    None,
}

impl Retries {
    /// Reads the parameter `retries`.
    pub(super) fn new(settings: &SchedulerSettings) -> Self {
        match settings.choice("retries") {
            "all" => Self::All,
            "none" => Self::None,
            _ => Self::Declared,
        }
    }
}
