//! What an engine has learned, to be kept over a restart of its process.
//!
//! It is what took visitors' time to prove (sessions) and what is needed before the first answer
//! has come (the pace: without it the overload detector takes a queue of 20 ms for a backlog even
//! if one service takes seconds, and refused clients are told to come again after one second).
//! The counts of the graph of sessions and of signals took days. Who waits and who runs is not
//! kept: their connections are gone. Nor is whether it was overload: the new queue tells. Reading
//! and writing files is the driver's.

use alloc::vec::Vec;

use bywash_units::Time;

use super::Engine;
use crate::pace::Pace;
use crate::request::ClassId;
use crate::session::{Cursor, Remembered, Slice};
use crate::value::Counts;

impl Engine {
    /// Adds the next sessions that are remembered to `slice`; see [`Sessions::copy`](crate::session::Sessions::copy).
    /// A driver whose requests wait meanwhile copies them in slices.
    pub fn copy_sessions(
        &self,
        now: Time,
        cursor: &mut Cursor,
        most: usize,
        slice: &mut Vec<Remembered>,
    ) -> Slice {
        self.sessions.copy(now, cursor, most, slice)
    }

    /// Remembers a session of a process before this one: to be called with the one served longest ago
    /// first, as [`Engine::copy_sessions`] gave them, with the time between added to their ages and with
    /// `served` in the indices that the classes have now. Says whether it is remembered. It is
    /// not if it is older than [`Options::session_ttl`](super::Options), if the engine has served
    /// it already, or if the table is full of younger ones.
    ///
    /// A session none of whose classes exist any more is still one that was served before.
    pub fn restore_session(&mut self, now: Time, session: Remembered) -> bool {
        self.sessions.restore(now, session)
    }

    /// Goes on with a class as [`Learning::counts`](crate::Learning::counts) gave it in a process
    /// before this one, with [`Counts::later`] and [`Counts::first`] in the numbers that the classes
    /// have now. Before the first request.
    pub fn restore_counts(&mut self, class: ClassId, counts: &Counts, published: Option<[f64; 2]>) {
        self.learning.restore(class, counts, published);
    }

    /// Goes on with signals as [`Learning::signal_counts`](crate::Learning::signal_counts) gave
    /// them in a process before this one.
    pub fn restore_signals(&mut self, kinds: u64, counts: &[[f64; 3]]) {
        self.learning.restore_signals(kinds, counts);
    }

    /// How long requests take.
    pub const fn pace(&self) -> Pace {
        self.pace
    }

    /// Starts from a pace that was measured before, until measurements of this engine outweigh
    /// it. Before the first request; later it would undo what was learned since.
    pub const fn restore_pace(&mut self, pace: Pace) {
        self.pace = pace;
    }
}
