//! The interface of a group of servers to the simulated world.

use std::fmt::Debug;

use bywash_units::{Time, TimeSpan};

/// A group of servers that serve requests in virtual time, with workers or with threads.
pub(crate) trait Application: Debug {
    /// Admits the request `id` of `class`, with a service time of `demand`.
    fn admit(&mut self, now: Time, id: u32, class: usize, demand: TimeSpan);

    /// Removes a request before it is done. Returns the work that was done on the request.
    fn remove(&mut self, now: Time, id: u32) -> TimeSpan;

    /// Returns the time of the next completion; `None` if no request is in service.
    fn next_end(&mut self) -> Option<Time>;

    /// Completes the work that ends at `now`, which must be the time of [`Application::next_end`].
    /// Returns the request that the work belongs to if all of its work is done, else `None`.
    fn finish(&mut self, now: Time) -> Option<u32>;

    /// Returns whether work on the request `id` has begun and has not ended.
    fn is_in_service(&self, id: u32) -> bool;

    /// Applies the planned changes of the servers until `now`. Returns the time of the next change;
    /// `None` if there is none.
    fn apply_changes(&mut self, now: Time) -> Option<Time> {
        let _ = now;
        None
    }

    /// Returns the totals from the start of the run until `now`.
    fn meters(&mut self, now: Time) -> Meters;

    /// Returns the number of requests that can be served at full speed at the same time.
    fn workers(&self) -> u32;
}

/// Totals over time, from the start of a run.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Meters {
    /// The total time that workers were busy, summed over the workers.
    pub(crate) busy: TimeSpan,
    /// The total time that requests have waited for a worker inside the application, summed over
    /// the requests.
    pub(crate) waited: TimeSpan,
    /// The total time in which at least one request waited for a worker (the pressure).
    pub(crate) stalled: TimeSpan,
    /// The total work done, in nanoseconds.
    pub(crate) work: f64,
    /// The total work that all workers could have done, in nanoseconds.
    pub(crate) capacity: f64,
    /// The total time of all workers, busy or idle, summed over the workers. Together with the
    /// elapsed time it gives their mean number.
    pub(crate) manned: TimeSpan,
}
