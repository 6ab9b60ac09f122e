//! The permanent clients of a run: the members of all sets.

use bywash_units::TimeSpan;

use crate::distribution::Stream;
use crate::file::Scenario;

/// The random stream of pauses between the sessions of a permanent client.
const PAUSES: u64 = 0x2001;

/// More sessions than any client has.
const SESSIONS: u64 = 1 << 32;

/// One client of a set in a run, always in a session or in the pause before the next.
#[derive(Clone, Debug)]
pub struct Client {
    set: usize,
    number: u64,
    sessions: u64,
    pauses: Stream,
}

impl Scenario {
    /// Returns all clients of all sets. The plans of each are independent of the fate of the
    /// others.
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
    /// Returns the index of its set in the scenario.
    pub fn set(&self) -> usize {
        self.set
    }

    /// Returns the pause before the next session, and the number of the visitor that the client
    /// then is.
    pub fn next(&mut self, scenario: &Scenario) -> (TimeSpan, u64) {
        let visitor = self.number * SESSIONS + self.sessions;
        self.sessions += 1;
        (scenario.client.think.draw(&mut self.pauses), visitor)
    }
}
