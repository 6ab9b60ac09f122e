//! A scenario file after resolution: class names have become indices, durations are parsed, and all
//! values are checked.
//!
//! The private module `raw` defines the form of a scenario file, and `base` reads it.

use bywash_units::{Rate, Time, TimeSpan};

use crate::adversary::Adversary;
use crate::arrivals::Profile;
use crate::class::Class;
use crate::client::{Client, Closes};
use crate::graph::Graph;
use crate::policies::PolicyChoice;
use crate::servers::Servers;
use crate::sets::ClientSet;
use crate::signal::Signal;
use crate::source::Source;

/// A checked scenario that is ready to run.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// The name of the scenario, as in the file.
    pub name: String,
    /// A line that describes the scenario and its origin.
    pub about: String,
    /// The number of requests that the servers serve at the same time.
    pub workers: u32,
    /// Properties of the servers other than the number of workers.
    pub servers: Servers,
    /// The maximum time that a request may wait for a slot. `None` means as long as its client
    /// waits.
    pub max_wait: Option<TimeSpan>,
    /// The maximum number of sessions that the gateway remembers; `None` for the gateway's default.
    pub sessions: Option<u32>,
    /// The classes of requests, in the order of the file.
    pub classes: Vec<Class>,
    /// The session graph: which classes follow each other in a session.
    pub graph: Graph,
    /// Changes of the class with which sessions start: the time of each change and the class's
    /// index, in order of time. Before the first change, the graph decides.
    pub starts: Vec<(TimeSpan, usize)>,
    /// The course of offered load over time.
    pub profile: Profile,
    /// The source of the visitors.
    pub source: Source,
    /// The levels of offered load ρ to run. Each gives result rows of its own.
    pub rho: Vec<f64>,
    /// The behaviour of all clients.
    pub client: Client,
    /// Signals that some visitors show from their first request, in the order of the file.
    pub signals: Vec<Signal>,
    /// Sets of permanent clients, which replace arriving visitors (a closed loop). Only the
    /// simulator and a live run without comparison can run them.
    pub sets: Vec<ClientSet>,
    /// The visibilities to run: whether the server side sees that a client has left. Each gives
    /// result rows of its own.
    pub closes: Vec<Closes>,
    /// Hostile populations. Only the simulator can run them.
    pub adversaries: Vec<Adversary>,
    /// The policies to run. Each gives result rows of its own.
    pub policies: Vec<PolicyChoice>,
    /// The number of seeds to run. Result rows are the sums over all seeds.
    pub seeds: u32,
    /// The first seed. The other seeds are the numbers that follow it.
    pub first_seed: u64,
    /// The length of a run: how long sessions arrive.
    pub length: Length,
}

/// The length of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Length {
    /// Sessions arrive for this duration with each seed.
    Duration(TimeSpan),
    /// Sessions arrive until an ideal policy would have confirmed this many orders, counted over
    /// all seeds of a result row.
    Orders(u64),
}

impl Scenario {
    /// The longest duration for which visitors may arrive: a year. In longer runs, times could no
    /// longer be represented exactly.
    pub const LONGEST: TimeSpan = TimeSpan::from_secs(366 * 24 * 3600);

    /// Returns the numbers of all seeds to run.
    pub fn seed_numbers(&self) -> impl Iterator<Item = u64> + use<> {
        (self.first_seed..).take(self.seeds as usize)
    }

    /// Returns the rate of sessions at which the offered load ρ is 1.
    pub fn unit_rate(&self) -> Rate {
        let work = self.graph.work_per_session(&self.classes).unwrap_or(TimeSpan::MAX);
        Rate::per_second(f64::from(self.workers) / work.as_secs_f64())
    }

    /// Returns the expected number of sessions with one seed of a run at level `rho`.
    pub fn sessions(&self, rho: f64) -> f64 {
        let duration = self.duration(rho);
        match &self.profile {
            Profile::Times(times) => {
                times.partition_point(|start| *start <= Time::ZERO + duration) as f64
            }
            profile => self.unit_rate().get() * profile.load(rho, duration),
        }
    }

    /// Returns the highest rate of session starts in a run at level `rho`. Returns zero for a list
    /// of times, as no start is drawn.
    pub fn peak_rate(&self, rho: f64) -> Rate {
        match &self.profile {
            Profile::Times(_) => Rate::per_second(0.0),
            profile => Rate::per_second(self.unit_rate().get() * profile.peak(rho)),
        }
    }

    /// Returns the index of the class with which a session starts at `now`.
    pub fn start_at(&self, now: Time) -> usize {
        let begun = self.starts.iter().rev().find(|(at, _)| Time::ZERO + *at <= now);
        begun.map_or(self.graph.start, |(_, class)| *class)
    }

    /// Returns whether the servers or the starts of sessions change during a run. Only the
    /// simulator can run such changes.
    pub fn changes(&self) -> bool {
        !self.servers.changes.is_empty() || !self.starts.is_empty()
    }

    /// Returns the duration for which sessions arrive with one seed of a run at level `rho`.
    pub fn duration(&self, rho: f64) -> TimeSpan {
        match self.length {
            Length::Duration(span) => span,
            Length::Orders(orders) => {
                let per_session = self.graph.orders_per_session().unwrap_or(0.0);
                let per_second = self.unit_rate().get() * rho.min(1.0) * per_session;
                let each = orders as f64 / f64::from(self.seeds.max(1));
                TimeSpan::from_secs_f64(each / per_second)
            }
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
