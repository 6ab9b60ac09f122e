//! State that the engine has learned and that the driver keeps across a restart of the process.
//!
//! The driver keeps:
//! - the sessions, which took visitors' time to prove;
//! - the mean service time, which is needed before the first answer. Without it the overload
//!   detector takes a queue of 20 ms for a backlog even if one service takes seconds, and refused
//!   clients get a `Retry-After` of one second;
//! - the counts of the session graph and of the signals, which took days to collect;
//! - the populations of clients and their lifts, which took hours to collect.
//!
//! Waiting and running requests are not kept because their connections are gone. The overload state
//! is not kept because the new queue shows it. The driver reads and writes the state files.

use alloc::vec::Vec;

use bywash_units::Time;

use super::Engine;
use crate::mean_service::MeanService;
use crate::request::ClassId;
use crate::session::{Cursor, Remembered, Slice};
use crate::value::{Counts, OtherCounts};

impl Engine {
    /// Appends the next remembered sessions to `slice`; see
    /// [`Sessions::copy`](crate::session::Sessions::copy). Copying in slices keeps each call short,
    /// so that requests need not wait for the whole copy.
    pub fn copy_sessions(
        &self,
        now: Time,
        cursor: &mut Cursor,
        most: usize,
        slice: &mut Vec<Remembered>,
    ) -> Slice {
        self.sessions.copy(now, cursor, most, slice)
    }

    /// Restores a session of an earlier process. Returns whether the session is now remembered.
    ///
    /// Pass the sessions that [`Engine::copy_sessions`] returned, the one that was served longest
    /// ago first. Add the time since the copy to the age, and translate `served` to the present
    /// class indices.
    ///
    /// A session is not restored if it is older than [`Options::session_ttl`](super::Options), if
    /// the engine has served it already, or if the table is full of younger sessions. A session
    /// none of whose classes exist any more still counts as served before.
    pub fn restore_session(&mut self, now: Time, session: Remembered) -> bool {
        self.sessions.restore(now, session)
    }

    /// Restores the counts and the published index of a class, as
    /// [`Learning::counts`](crate::Learning::counts) returned them in an earlier process. First
    /// translate [`Counts::later`] and [`Counts::first`] to the present class indices. Call this
    /// before the first request.
    pub fn restore_counts(&mut self, class: ClassId, counts: &Counts, published: Option<[f64; 2]>) {
        self.learning.restore(class, counts, published);
    }

    /// Restores the counts of signals, as
    /// [`Learning::signal_counts`](crate::Learning::signal_counts) returned them in an earlier
    /// process. They are ignored if the kinds of signals differ.
    pub fn restore_signals(&mut self, kinds: u64, counts: &[[f64; 3]]) {
        self.learning.restore_signals(kinds, counts);
    }

    /// Replaces the counts of the other gateways in front of the same application; see
    /// [`Learning::set_others`](crate::Learning::set_others).
    pub fn set_other_counts(&mut self, others: OtherCounts) {
        self.learning.set_others(others);
    }

    /// Returns the mean time that a request holds its slot, with the number of measurements.
    pub const fn mean_service(&self) -> MeanService {
        self.mean_service
    }

    /// Sets the mean service time to an earlier measurement, which counts until this engine's own
    /// measurements outweigh it. Call this before the first request, because it replaces what was
    /// measured since.
    pub const fn restore_mean_service(&mut self, mean_service: MeanService) {
        self.mean_service = mean_service;
    }
}
