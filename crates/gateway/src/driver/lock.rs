//! Measures how long the engine's lock is held, and how long threads wait for it.
//!
//! A request takes the lock two to four times. So reading the clock each time would cost too much.
//! Every wait is timed, but only one hold in [`TIMED`]. The measurements are protected by the lock
//! itself, so they cost no atomic operation.

use std::ops::{Deref, DerefMut};
use std::time::{Duration, Instant};

use bywash_engine::{RequestTable, Wakers};
use bywash_units::Time;

use super::Core;
use crate::process::boot_clock;
use crate::process::sync::MutexGuard;

/// The number of holds of the lock per timed hold: one hold in this many is timed.
const TIMED: u64 = 61;

/// The guard of the engine's lock. If its hold is timed, dropping it records the duration.
pub(super) struct Locked<'a> {
    pub(super) core: MutexGuard<'a, Core>,
    /// The time at which this hold began; `None` if it is not timed.
    since: Option<Instant>,
}

/// The times for which the engine's lock was held and waited for, since the start of the process.
#[derive(Clone, Debug, Default)]
pub(crate) struct LockTimes {
    /// The number of times that the lock was taken.
    taken: u64,
    /// The durations of holds: of one hold in [`TIMED`].
    pub(crate) held: Times,
    /// The durations of waits for the lock: of every wait.
    pub(crate) waited: Times,
}

/// A histogram of durations.
#[derive(Clone, Debug, Default)]
pub(crate) struct Times {
    /// The number of durations per bucket. The last bucket has no upper bound.
    counts: [u64; Times::BOUNDS.len() + 1],
    /// The sum of all durations.
    sum: Duration,
}

impl<'a> Locked<'a> {
    #[inline]
    pub(super) fn new(mut core: MutexGuard<'a, Core>) -> Self {
        core.times.taken += 1;
        let is_timed = core.times.taken.is_multiple_of(TIMED);
        Self { core, since: is_timed.then(Instant::now) }
    }

    /// Takes back the slots of a lease that has ended, before a request can get one of them. `now`
    /// is the time on the engine's clock.
    #[inline]
    pub(super) fn end_lease(&mut self, now: Time, wakers: &mut Wakers) {
        let core = &mut *self.core;
        if is_over(core.lease_end)
            && let Some((_, slots)) = core.lease_end.take()
        {
            core.requests.carry_out(now, wakers, |engine, actions| {
                engine.set_slot_lease(now, Some(slots), actions);
            });
        }
    }
}

/// Returns whether a lease has ended. A lease without an end goes on.
#[inline]
pub(super) fn is_over(lease_end: Option<(Time, u32)>) -> bool {
    lease_end.is_some_and(|(end, _)| boot_clock::now() >= end)
}

impl Deref for Locked<'_> {
    type Target = RequestTable;

    fn deref(&self) -> &RequestTable {
        &self.core.requests
    }
}

impl DerefMut for Locked<'_> {
    fn deref_mut(&mut self) -> &mut RequestTable {
        &mut self.core.requests
    }
}

impl Drop for Locked<'_> {
    #[inline]
    fn drop(&mut self) {
        if let Some(since) = self.since {
            self.core.times.held.count(since.elapsed());
        }
    }
}

impl Times {
    /// The upper bounds of the buckets in seconds. They range from a quick call to the longest
    /// computation that the engine is known to make.
    const BOUNDS: [f64; 6] = [1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1];

    pub(super) fn count(&mut self, duration: Duration) {
        let seconds = duration.as_secs_f64();
        let place = Self::BOUNDS.iter().position(|bound| seconds <= *bound);
        self.counts[place.unwrap_or(Self::BOUNDS.len())] += 1;
        self.sum += duration;
    }

    /// Returns the upper bound of each bucket in seconds with the number of durations in that
    /// bucket alone, and the sum of all durations in seconds. The last bound is infinite.
    pub(crate) fn read(&self) -> (Vec<(f64, u64)>, f64) {
        let bounds = Self::BOUNDS.into_iter().chain([f64::INFINITY]);
        (bounds.zip(self.counts).collect(), self.sum.as_secs_f64())
    }
}
