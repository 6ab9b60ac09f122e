//! The share of the slot time that each level has had recently, and which levels are below their
//! floors.

use alloc::vec::Vec;

use bywash_units::Time;

use super::LevelId;

/// The time constant in seconds: use that long ago counts 1/e.
const MEMORY: f64 = 2.0;

#[derive(Debug)]
pub(super) struct Shares {
    floors: Vec<f64>,
    /// Seconds of slot time, fading.
    used: Vec<f64>,
    at: Time,
}

impl Shares {
    pub(super) fn new(floors: impl Iterator<Item = f64>) -> Self {
        let floors: Vec<f64> = floors.collect();
        Self { used: floors.iter().map(|_| 0.0).collect(), floors, at: Time::ZERO }
    }

    /// Adds slot time that a level uses beyond the amount counted before; it may be negative.
    pub(super) fn used(&mut self, now: Time, level: LevelId, seconds: f64) {
        let kept = libm::exp(-now.since(self.at).as_secs_f64() / MEMORY);
        self.at = now;
        for used in &mut self.used {
            *used *= kept;
        }
        self.used[level.0] = (self.used[level.0] + seconds).max(0.0);
    }

    /// Returns the share of a level; zero if no slot time was used.
    pub(super) fn of(&self, level: LevelId) -> f64 {
        let all: f64 = self.used.iter().sum();
        if all > 0.0 { self.used[level.0] / all } else { 0.0 }
    }

    /// Returns whether a level that wants slots has had less than its floor.
    pub(super) fn starved(&self, level: LevelId) -> bool {
        self.of(level) < self.floors[level.0]
    }
}
