//! The schedule of probes: when to try another limit briefly, and in which direction.
//!
//! Probes are separated by *pauses* of constant length. A probe upwards costs no throughput, only a
//! few more requests inside the application for a moment, and there is one after each pause. A
//! probe downwards costs throughput. Therefore there is one only after every third pause, and such
//! probes take a fifteenth of the time at most.
//!
//! A probe downwards measures the *base*: the latency of a request when no request waits inside the
//! application. While the base is in doubt, the next probe downwards follows immediately.

use bywash_units::{Time, TimeSpan};

/// A probe: a limit that is in force for a short time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Probe {
    pub(super) direction: Direction,
    pub(super) slots: u32,
    pub(super) since: Time,
    /// The time at which the probe ends, whatever was measured until then. It bounds how long the
    /// probe keeps requests waiting.
    pub(super) ends: Time,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    Up,
    Down,
}

/// The schedule of the next probes. See the module documentation.
#[derive(Debug)]
pub(super) struct Schedule {
    pause: TimeSpan,
    /// The number of pauses from one probe downwards to the next.
    pauses: u64,
    up: Time,
    down: Time,
    /// Whether the base counts as confirmed by the last probe downwards.
    is_sure: bool,
    /// Whether no probe downwards has been made yet.
    is_new: bool,
}

/// The maximum number of pauses between two probes downwards, reached while nothing changes.
const MOST: u64 = 3;
/// The divisor that limits the time for probes downwards to 1/`PROBE_SHARE_DIVISOR` of all time.
const PROBE_SHARE_DIVISOR: u64 = 15;

impl Schedule {
    /// Creates a schedule with this pause between probes. At first the base is in doubt.
    pub(super) const fn new(pause: TimeSpan) -> Self {
        Self { pause, pauses: 1, up: Time::ZERO, down: Time::ZERO, is_sure: false, is_new: true }
    }

    pub(super) const fn is_sure(&self) -> bool {
        self.is_sure
    }

    pub(super) const fn is_new(&self) -> bool {
        self.is_new
    }

    /// Returns the direction of the probe that is due; `None` if none is due.
    pub(super) fn due(&self, now: Time) -> Option<Direction> {
        if now >= self.down {
            Some(Direction::Down)
        } else {
            (now >= self.up).then_some(Direction::Up)
        }
    }

    /// Makes a probe downwards due now, because the base has moved by an unknown amount and is in
    /// doubt.
    pub(super) fn doubt(&mut self, now: Time) {
        self.pauses = 1;
        self.down = now;
        (self.is_sure, self.is_new) = (false, false);
    }

    /// Schedules the next probe in each direction after one pause, because a measurement has
    /// corrected the base. The new value may still be slightly wrong: the probe downwards measures
    /// it again.
    pub(super) fn bring_forward(&mut self, now: Time) {
        self.pauses = 1;
        self.down = now + self.pause;
        self.up = now + self.pause;
    }

    /// Schedules the next probe upwards after one pause. The reason is that a probe upwards is
    /// over, or that the bounds of the limit left no room for one.
    pub(super) fn note_probe_up(&mut self, now: Time) {
        self.up = now + self.pause;
    }

    /// Schedules the next probe downwards, after one that lasted for `cost`. The base now counts as
    /// confirmed, even if that probe ended without a result.
    pub(super) fn note_probe_down(&mut self, now: Time, cost: TimeSpan) {
        self.down = now + (self.pause * self.pauses).max(cost * PROBE_SHARE_DIVISOR);
        self.pauses = (self.pauses + 1).min(MOST);
        self.up = now + self.pause;
        (self.is_sure, self.is_new) = (true, false);
    }
}
