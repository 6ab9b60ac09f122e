//! Which share of the slot time each level has had lately, and who is below its floor.

use alloc::vec::Vec;

use bywash_units::Time;

use super::LevelId;

/// What was used so long ago counts 1/e.
const MEMORY: f64 = 2.0;

#[derive(Debug)]
pub(super) struct Shares {
    floors: Vec<f64>,
    /// Seconds of slots, fading.
    used: Vec<f64>,
    at: Time,
}

impl Shares {
    pub(super) fn new(floors: impl Iterator<Item = f64>) -> Self {
        let floors: Vec<f64> = floors.collect();
        Self { used: floors.iter().map(|_| 0.0).collect(), floors, at: Time::ZERO }
    }

    /// A level uses so many seconds more, or fewer, than was said before.
    pub(super) fn used(&mut self, now: Time, level: LevelId, seconds: f64) {
        let kept = libm::exp(-now.since(self.at).as_secs_f64() / MEMORY);
        self.at = now;
        for used in &mut self.used {
            *used *= kept;
        }
        self.used[level.0] = (self.used[level.0] + seconds).max(0.0);
    }

    /// The share of a level; nothing where nobody has used anything.
    pub(super) fn of(&self, level: LevelId) -> f64 {
        let all: f64 = self.used.iter().sum();
        if all > 0.0 { self.used[level.0] / all } else { 0.0 }
    }

    /// Whether a level that wants slots has had less than its floor.
    pub(super) fn starved(&self, level: LevelId) -> bool {
        self.of(level) < self.floors[level.0]
    }
}
