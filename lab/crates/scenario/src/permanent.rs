//! The permanent clients of a run: the members of all sets.

use bywash_units::TimeSpan;

use crate::distribution::Stream;
use crate::file::Scenario;

/// The number of the random stream for pauses between the sessions of a permanent client.
const PAUSES: u64 = 0x2001;

/// The difference between the first visitor numbers of two clients. No client has as many sessions
/// in a run, so the visitor numbers of different clients never overlap.
const SESSIONS: u64 = 1 << 32;

/// One permanent client in a run. It is always in a session or in the pause before its next
/// session.
#[derive(Clone, Debug)]
pub struct Client {
    set: usize,
    number: u64,
    sessions: u64,
    pauses: Stream,
}

impl Scenario {
    /// Returns all clients of all sets. Each client has its own random stream, so the outcome of
    /// one client does not change the plans of the others.
    pub fn clients(&self, seed: u64) -> impl Iterator<Item = Client> {
        let sets = self.sets.iter().enumerate();
        let all = sets.flat_map(|(set, clients)| (0..clients.clients).map(move |_| set));
        (0..).zip(all).map(move |(number, set)| {
            let pauses = Stream::new(seed, PAUSES, number);
            Client { set, number, sessions: 0, pauses }
        })
    }
}

impl Client {
    /// Returns the index of the client's set in the scenario.
    pub fn set(&self) -> usize {
        self.set
    }

    /// Returns the pause before the client's next session, and the visitor number of that session.
    pub fn next(&mut self, scenario: &Scenario) -> (TimeSpan, u64) {
        let visitor = self.number * SESSIONS + self.sessions;
        self.sessions += 1;
        (scenario.client.think.draw(&mut self.pauses), visitor)
    }
}
