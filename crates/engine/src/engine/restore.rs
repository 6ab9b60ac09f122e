//! What an engine has learned, to be kept over a restart of its process.
//!
//! It is what took visitors' time to prove (sessions) and what is needed before the first answer
//! has come (the pace: without it the overload detector takes a queue of 20 ms for a backlog even
//! if one service takes seconds, and refused clients are told to come again after one second).
//! The counts of the graph of sessions and of signals took days. Who waits and who runs is not kept: their connections are gone. Nor is whether it was overload:
//! the new queue tells. Reading and writing files is the driver's.

use alloc::vec::Vec;

use bywash_units::Time;

use super::Engine;
use crate::pace::Pace;
use crate::request::{ClassId, Signals};
use crate::session::Remembered;
use crate::value::Counts;

impl Engine {
    /// The sessions that are remembered, the one served longest ago first.
    pub fn sessions(&self, now: Time) -> impl Iterator<Item = Remembered> + '_ {
        self.sessions.remembered(now)
    }

    /// Remembers a session of a process before this one: to be called in the order in which
    /// [`Engine::sessions`] gave them, with the time between added to their ages and with
    /// `served` in the indices that the classes have now. Says whether it is remembered. It is
    /// not if it is older than [`Options::session_ttl`](super::Options), if the engine has served
    /// it already, or if the table is full of younger ones.
    ///
    /// A session none of whose classes exist any more is still one that was served before.
    pub fn restore_session(&mut self, now: Time, session: Remembered) -> bool {
        self.sessions.restore(now, session)
    }

    /// What was counted of every class in the graph of sessions, by class.
    pub fn counts(&self) -> Vec<Counts> {
        let graph = self.learning.graph();
        (0..self.classes.len()).map(|class| graph.counts(ClassId(class as u8))).collect()
    }

    /// Counts a class as a process before this one has, with [`Counts::later`] and
    /// [`Counts::first`] in the numbers that the classes have now. Before the first request.
    pub fn restore_counts(&mut self, class: ClassId, counts: &Counts) {
        self.learning.restore(class, counts);
    }

    /// Counts sessions that began with these signals as a process before this one has.
    pub fn restore_signals(&mut self, signals: Signals, sessions: f64, ordered: f64) {
        self.learning.restore_signals(signals, sessions, ordered);
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
