//! The share of recent slot time that each level had, and which levels had less than their floors.

use alloc::vec::Vec;

use bywash_units::Time;

use super::LevelId;

/// The time constant of the exponential decay, in seconds: slot time used that long ago counts 1/e.
const MEMORY: f64 = 2.0;

#[derive(Debug)]
pub(super) struct Shares {
    floors: Vec<f64>,
    /// The recent slot time of each level, in seconds, with exponential decay ([`MEMORY`]).
    used: Vec<f64>,
    at: Time,
}

impl Shares {
    pub(super) fn new(floors: impl Iterator<Item = f64>) -> Self {
        let floors: Vec<f64> = floors.collect();
        Self { used: floors.iter().map(|_| 0.0).collect(), floors, at: Time::ZERO }
    }

    /// Adds `seconds` of slot time to a level. A negative number corrects an earlier estimate.
    pub(super) fn used(&mut self, now: Time, level: LevelId, seconds: f64) {
        let kept = libm::exp(-now.since(self.at).as_secs_f64() / MEMORY);
        self.at = now;
        for used in &mut self.used {
            *used *= kept;
        }
        self.used[level.0] = (self.used[level.0] + seconds).max(0.0);
    }

    /// Returns a level's share, 0 to 1, of all recent slot time; zero if none was used.
    pub(super) fn of(&self, level: LevelId) -> f64 {
        let all: f64 = self.used.iter().sum();
        if all > 0.0 { self.used[level.0] / all } else { 0.0 }
    }

    /// Returns whether a level had less than its floor share of recent slot time. The caller must
    /// ask only about levels that want slots.
    pub(super) fn starved(&self, level: LevelId) -> bool {
        self.of(level) < self.floors[level.0]
    }
}
