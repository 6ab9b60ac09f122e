//! The schedule of probes: when to try another limit briefly, and which.
//!
//! A probe upwards costs no throughput, only a few more requests inside for a moment, so there is
//! one every pause. A probe downwards costs throughput. So there is one every third pause, and they
//! take a fifteenth of the time at most; but while the base is in doubt, one follows immediately.

use bywash_units::{Time, TimeSpan};

/// A limit that holds for a short time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Probe {
    pub(super) direction: Direction,
    pub(super) slots: u32,
    pub(super) since: Time,
    /// The time at which the probe ends whatever was measured, so that waiting requests are not
    /// kept from a slot for longer.
    pub(super) ends: Time,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    Up,
    Down,
}

/// The schedule of the next probes.
#[derive(Debug)]
pub(super) struct Schedule {
    pause: TimeSpan,
    /// The number of pauses until the next probe downwards.
    pauses: u64,
    up: Time,
    down: Time,
    /// Whether the last probe has confirmed the base.
    is_sure: bool,
    /// Whether no probe downwards was made yet.
    is_new: bool,
}

/// The number of pauses between two probes downwards when nothing changes.
const MOST: u64 = 3;
/// The divisor of the time that probes downwards may take.
const SHARE: u64 = 15;

impl Schedule {
    /// Creates a schedule; at first the base is in doubt.
    pub(super) const fn new(pause: TimeSpan) -> Self {
        Self { pause, pauses: 1, up: Time::ZERO, down: Time::ZERO, is_sure: false, is_new: true }
    }

    pub(super) const fn is_sure(&self) -> bool {
        self.is_sure
    }

    pub(super) const fn is_new(&self) -> bool {
        self.is_new
    }

    /// Returns the probe that is due.
    pub(super) fn due(&self, now: Time) -> Option<Direction> {
        if now >= self.down {
            Some(Direction::Down)
        } else {
            (now >= self.up).then_some(Direction::Up)
        }
    }

    /// Notes that the base has moved by an unknown amount.
    pub(super) fn doubt(&mut self, now: Time) {
        self.pauses = 1;
        self.down = now;
        (self.is_sure, self.is_new) = (false, false);
    }

    /// Notes that a measurement has corrected the base, which may still be slightly wrong.
    pub(super) fn look_soon(&mut self, now: Time) {
        self.pauses = 1;
        self.down = now + self.pause;
        self.up = now + self.pause;
    }

    /// Notes that a probe upwards was made, or that there was no room for it.
    pub(super) fn went_up(&mut self, now: Time) {
        self.up = now + self.pause;
    }

    /// Notes that a probe downwards was made, which took `cost` and confirmed the base.
    pub(super) fn went_down(&mut self, now: Time, cost: TimeSpan) {
        self.down = now + (self.pause * self.pauses).max(cost * SHARE);
        self.pauses = (self.pauses + 1).min(MOST);
        self.up = now + self.pause;
        (self.is_sure, self.is_new) = (true, false);
    }
}
