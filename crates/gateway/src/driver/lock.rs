//! Times for which the engine's lock is held and waited for.
//!
//! A request takes the lock two to four times, so the clock is not read each time. Every wait is
//! timed, but only one hold in [`TIMED`]. The counts lie under the lock itself, so they cost no
//! atomic operation.

use std::ops::{Deref, DerefMut};
use std::time::{Duration, Instant};

use bywash_engine::RequestTable;

use super::Core;
use crate::process::sync::MutexGuard;

/// The number of holds of which one is timed.
const TIMED: u64 = 61;

/// The engine and the tasks of its requests, locked.
pub(super) struct Locked<'a> {
    pub(super) core: MutexGuard<'a, Core>,
    /// When this hold began, if it is timed.
    since: Option<Instant>,
}

/// The counts since the start.
#[derive(Clone, Debug, Default)]
pub(crate) struct LockTimes {
    taken: u64,
    /// The times of one hold in [`TIMED`].
    pub(crate) held: Times,
    /// The times of the waits for the lock.
    pub(crate) waited: Times,
}

/// Durations, by size.
#[derive(Clone, Debug, Default)]
pub(crate) struct Times {
    counts: [u64; Times::BOUNDS.len() + 1],
    sum: Duration,
}

impl<'a> Locked<'a> {
    #[inline]
    pub(super) fn new(mut core: MutexGuard<'a, Core>) -> Self {
        core.times.taken += 1;
        let is_timed = core.times.taken.is_multiple_of(TIMED);
        Self { core, since: is_timed.then(Instant::now) }
    }
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
    /// The bounds in seconds: from a quick call to the longest that the engine is known to compute.
    const BOUNDS: [f64; 6] = [1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1];

    pub(super) fn count(&mut self, duration: Duration) {
        let seconds = duration.as_secs_f64();
        let place = Self::BOUNDS.iter().position(|bound| seconds <= *bound);
        self.counts[place.unwrap_or(Self::BOUNDS.len())] += 1;
        self.sum += duration;
    }

    /// Returns the count of each bucket with its bound in seconds, and the sum of all durations in
    /// seconds.
    pub(crate) fn read(&self) -> (Vec<(f64, u64)>, f64) {
        let bounds = Self::BOUNDS.into_iter().chain([f64::INFINITY]);
        (bounds.zip(self.counts).collect(), self.sum.as_secs_f64())
    }
}
