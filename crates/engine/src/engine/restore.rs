//! State that the engine has learned, for keeping across a restart of the process.
//!
//! Kept are:
//! - the sessions, which took visitors' time to prove;
//! - the mean service time, which is needed before the first answer. Without it the overload
//!   detector takes a queue of 20 ms for a backlog even if one service takes seconds, and refused
//!   clients get a `Retry-After` of one second;
//! - the counts of the session graph and of the signals, which took days to collect.
//!
//! Waiting and running requests are not kept because their connections are gone. The overload state
//! is not kept because the new queue shows it. The driver reads and writes the files.

use alloc::vec::Vec;

use bywash_units::Time;

use super::Engine;
use crate::mean_service::MeanService;
use crate::request::ClassId;
use crate::session::{Cursor, Remembered, Slice};
use crate::value::Counts;

impl Engine {
    /// Adds the next remembered sessions to `slice`; see
    /// [`Sessions::copy`](crate::session::Sessions::copy). A driver whose requests wait during the
    /// copy copies the sessions in slices.
    pub fn copy_sessions(
        &self,
        now: Time,
        cursor: &mut Cursor,
        most: usize,
        slice: &mut Vec<Remembered>,
    ) -> Slice {
        self.sessions.copy(now, cursor, most, slice)
    }

    /// Restores a session of an earlier process. Returns whether it is remembered.
    ///
    /// Restore the session that was served longest ago first, as [`Engine::copy_sessions`] returned
    /// them. Add the time since the copy to their ages, and translate `served` to the present class
    /// indices.
    ///
    /// A session is not remembered if it is older than [`Options::session_ttl`](super::Options), if
    /// the engine has served it already, or if the table is full of younger sessions. A session
    /// none of whose classes exist any more still counts as one that was served before.
    pub fn restore_session(&mut self, now: Time, session: Remembered) -> bool {
        self.sessions.restore(now, session)
    }

    /// Restores a class's counts as [`Learning::counts`](crate::Learning::counts) returned them in
    /// an earlier process, with [`Counts::later`] and [`Counts::first`] translated to the present
    /// class numbers. Call this before the first request.
    pub fn restore_counts(&mut self, class: ClassId, counts: &Counts, published: Option<[f64; 2]>) {
        self.learning.restore(class, counts, published);
    }

    /// Restores the signals' counts as [`Learning::signal_counts`](crate::Learning::signal_counts)
    /// returned them in an earlier process.
    pub fn restore_signals(&mut self, kinds: u64, counts: &[[f64; 3]]) {
        self.learning.restore_signals(kinds, counts);
    }

    /// Returns the mean service time of requests.
    pub const fn mean_service(&self) -> MeanService {
        self.mean_service
    }

    /// Starts from an earlier measurement of the mean service time, until this engine's own
    /// measurements outweigh it. Call this before the first request; later it would undo what was
    /// learned since.
    pub const fn restore_mean_service(&mut self, mean_service: MeanService) {
        self.mean_service = mean_service;
    }
}
