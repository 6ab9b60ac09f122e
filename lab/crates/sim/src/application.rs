//! The interface of a group of servers to the simulated world.

use std::fmt::Debug;

use bywash_units::{Time, TimeSpan};

/// A group of servers.
pub(crate) trait Application: Debug {
    /// Admits a request of a class.
    fn admit(&mut self, now: Time, id: u32, class: usize, demand: TimeSpan);

    /// Removes a request before it is done. Returns the work that was done on it.
    fn remove(&mut self, now: Time, id: u32) -> TimeSpan;

    /// Returns the time of the next completion.
    fn next_end(&mut self) -> Option<Time>;

    /// Completes the work that ends at `now`, the time of [`Application::next_end`]. Returns the
    /// request if all of it is done.
    fn finish(&mut self, now: Time) -> Option<u32>;

    /// Returns whether work on a request has begun.
    fn serves(&self, id: u32) -> bool;

    /// Applies changes until `now`. Returns the time of the next change.
    fn look(&mut self, now: Time) -> Option<Time> {
        let _ = now;
        None
    }

    /// Returns the totals until `now`.
    fn meters(&mut self, now: Time) -> Meters;

    /// Returns the number of requests that can be served at full speed.
    fn workers(&self) -> u32;
}

/// Totals over time.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Meters {
    /// Time that workers were busy.
    pub(crate) busy: TimeSpan,
    /// Total time that requests have waited inside.
    pub(crate) waited: TimeSpan,
    /// Time in which at least one request waited inside (pressure).
    pub(crate) stalled: TimeSpan,
    /// Work done, in nanoseconds.
    pub(crate) work: f64,
    /// Work that all workers could have done, in nanoseconds.
    pub(crate) capacity: f64,
    /// Total time of all workers, busy or idle.
    pub(crate) manned: TimeSpan,
}
