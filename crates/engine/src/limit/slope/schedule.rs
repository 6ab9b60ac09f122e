//! When to try another limit for a moment, and which.
//!
//! Upwards costs no throughput, only a few requests more inside for a moment: so every pause.
//! Downwards costs throughput: so every third time, no more often than that it takes a fifteenth of
//! the time, but at once while the base is in doubt.

use bywash_units::{Span, Time};

/// A limit that holds for a moment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Probe {
    pub(super) direction: Direction,
    pub(super) slots: u32,
    pub(super) since: Time,
    /// When it is over whatever was seen: who waits is not kept from a slot for longer.
    pub(super) ends: Time,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    Up,
    Down,
}

/// When the next probe is due.
#[derive(Debug)]
pub(super) struct Schedule {
    pause: Span,
    /// Pauses until the next probe downwards.
    pauses: u64,
    up: Time,
    down: Time,
    /// Whether the last probe has found the base where it was thought to be.
    is_sure: bool,
}

/// Pauses between two probes downwards, when nothing changes.
const MOST: u64 = 3;
/// A probe downwards takes this part of the time at most.
const SHARE: u64 = 15;

impl Schedule {
    /// At first the base is in doubt.
    pub(super) const fn new(pause: Span) -> Self {
        Self { pause, pauses: 1, up: Time::ZERO, down: Time::ZERO, is_sure: false }
    }

    pub(super) const fn is_sure(&self) -> bool {
        self.is_sure
    }

    /// What is due.
    pub(super) fn due(&self, now: Time) -> Option<Direction> {
        if now >= self.down {
            Some(Direction::Down)
        } else {
            (now >= self.up).then_some(Direction::Up)
        }
    }

    /// The base has moved, and nobody knows how far.
    pub(super) fn doubt(&mut self, now: Time) {
        self.pauses = 1;
        self.down = now;
        self.is_sure = false;
    }

    /// The base was set right by what was seen, and may be a little wrong.
    pub(super) fn look_soon(&mut self, now: Time) {
        self.pauses = 1;
        self.down = now + self.pause;
        self.up = now + self.pause;
    }

    /// A probe upwards was made, or there was no room for it.
    pub(super) fn went_up(&mut self, now: Time) {
        self.up = now + self.pause;
    }

    /// A probe downwards was made, which took `cost`, and found the base where it was thought.
    pub(super) fn went_down(&mut self, now: Time, cost: Span) {
        self.down = now + (self.pause * self.pauses).max(cost * SHARE);
        self.pauses = (self.pauses + 1).min(MOST);
        self.up = now + self.pause;
        self.is_sure = true;
    }
}
