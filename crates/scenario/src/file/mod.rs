//! A resolved and consistent scenario: class names are indices, and durations are parsed.
//!
//! The private modules `written` and `base` define the form of the file.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use bywash_units::{Rate, Span, Time, Utility};
use serde::{Deserialize, Serialize};

use crate::adversary::Adversary;
use crate::arrivals::Profile;
use crate::graph::Graph;
use crate::law::Law;
use crate::lines::Lines;
use crate::servers::{Departures, Servers};
use crate::service::Service;
use crate::sets::ClientSet;
use crate::shift::Shift;
use crate::signal::Signal;
use crate::source::Source;
use crate::threads::Parallel;
use crate::throttle::Throttle;
use crate::{base, written};

/// A scenario that is ready to run.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Its name, as in the file.
    pub name: String,
    /// One line of description and origin.
    pub about: String,
    /// The number of requests that the servers run at once.
    pub workers: u32,
    /// Further properties of the servers.
    pub servers: Servers,
    /// How long a request may wait for a worker; `None` is as long as its client waits.
    pub max_wait: Option<Span>,
    /// The most sessions that are remembered; `None` is the gateway's default.
    pub sessions: Option<u32>,
    /// The classes of requests, in the order of the file.
    pub classes: Vec<Class>,
    /// The session graph.
    pub graph: Graph,
    /// Times from which sessions start at another class than the graph says, in order.
    pub starts: Vec<(Span, usize)>,
    /// The course of offered load over time.
    pub profile: Profile,
    /// The origin of visitors.
    pub source: Source,
    /// The levels of ρ to run, one cell each.
    pub rho: Vec<f64>,
    /// The behaviour of clients.
    pub client: Client,
    /// Signals that some visitors show from their first request, in the order of the file.
    pub signals: Vec<Signal>,
    /// Sets of permanent clients that replace arriving visitors (a closed load). Only the simulator
    /// and a live run without comparison can run them.
    pub sets: Vec<ClientSet>,
    /// Whether the server side can see a client leave; one cell each.
    pub closes: Vec<Closes>,
    /// Hostile populations. Only the simulator can run them.
    pub adversaries: Vec<Adversary>,
    /// The policies to run, one cell each.
    pub policies: Vec<PolicyChoice>,
    /// The number of seeds to run and average over.
    pub seeds: u32,
    /// The first seed; the others follow it.
    pub first_seed: u64,
    /// How long sessions arrive.
    pub length: Length,
}

/// A class of requests.
#[derive(Clone, Debug)]
pub struct Class {
    /// Its name.
    pub name: String,
    /// The HTTP method in a live run.
    pub method: String,
    /// Path and query in a live run.
    pub path: String,
    /// The form that a live run sends as `application/x-www-form-urlencoded`; empty for none.
    pub form: String,
    /// The only status that counts as an answer in a live run; any of 2xx and 3xx if `None`.
    pub status: Option<u16>,
    /// Whether it is a transaction or browsing.
    pub tier: Tier,
    /// The utility, for policies that use it.
    pub utility: Utility,
    /// Places in its queue, for policies with one per class.
    pub queue: Option<u32>,
    /// Indices of its prerequisite classes. The class counts as a transaction only for a session
    /// that was served one of them.
    pub after: Vec<usize>,
    /// Service demand.
    pub service: Service,
    /// A different service demand for a limited time.
    pub shift: Option<Shift>,
    /// The least and the most running time, if its requests may be stopped while they run.
    pub stop: Option<(Span, Span)>,
    /// The revenue of an answer, if it is an order.
    pub earns: Utility,
    /// A fixed utility that is not learned.
    pub pinned: Option<Utility>,
    /// The think time after it; that of the client if `None`.
    pub think: Option<Law>,
    /// How long a client waits for it; the client's patience if `None`.
    pub patience: Option<Law>,
    /// The station that serves it, an index of `servers.stations`; the application's workers if
    /// `None`.
    pub station: Option<usize>,
    /// Its tasks and threads, for `servers.threads`.
    pub parallel: Parallel,
}

impl Class {
    /// Returns the service demand of a request whose session begins at `now`.
    pub fn service_at(&self, now: Time) -> &Service {
        let shift = self.shift.as_ref().filter(|shift| shift.is_on(now));
        shift.map_or(&self.service, |shift| &shift.service)
    }
}

/// Whether requests are part of a purchase.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Tier {
    /// Part of a purchase.
    Transact,
    /// Anything else.
    Browse,
}

/// Whether the server side notices that a client closes its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Closes {
    /// The departure is noticed, and the request can be removed from the queue or stopped.
    Visible,
    /// An intermediary hides it (a CDN, a pooling proxy), and the request looks like any other.
    Hidden,
    /// The departure is noticed while the request waits for a slot or inside; a request in service
    /// is served to its end. The database of paper 4 checks a mark when a thread gets its turn, and
    /// not again [seed 4.6]. Only the simulator can run this.
    Waiting,
}

impl Closes {
    /// Returns the name used in files and results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Visible => "visible",
            Self::Hidden => "hidden",
            Self::Waiting => "waiting",
        }
    }
}

impl fmt::Display for Closes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The event that ends a client's patience.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WaitsFor {
    /// The end of the answer.
    #[default]
    Answer,
    /// The beginning of service: a client in service stays. Only the simulator can run this.
    Service,
}

/// The behaviour of clients.
#[derive(Clone, Copy, Debug)]
pub struct Client {
    /// The pause between a page and the next request.
    pub think: Law,
    /// How long a client waits for an answer.
    pub patience: Law,
    /// The event that the client waits for.
    pub waits_for: WaitsFor,
    /// Attempts at a request beyond the first. After them the session is abandoned.
    pub retries: u32,
    /// The number of these attempts that may follow a refusal or an error; 0 for clients that do
    /// not retry after a refusal.
    pub retries_after_refusal: u32,
    /// The pause before the retry of a request that timed out.
    pub pause_after_timeout: Span,
    /// The pause before the retry of a request that was refused.
    pub pause_after_refusal: Law,
    /// Whether the client, before that pause, waits as long as the refusal asked (`Retry-After`).
    pub keeps_retry_after: bool,
    /// Whether a retry declares that it is one.
    pub declares_retries: bool,
    /// The probability that a disappointed client gives up although retries are left.
    pub abandon: f64,
}

/// A policy to run, with the parameters that differ from their defaults.
#[derive(Clone, Debug)]
pub struct PolicyChoice {
    /// The name in the catalogue.
    pub name: String,
    /// The name in the result; the policy's own if the file gives none.
    pub label: String,
    /// Parameters as text, by name.
    pub parameters: BTreeMap<String, String>,
    /// The policy of the concurrency limit; `servers.limit` if `None`.
    pub limit: Option<PartChoice>,
    /// The policy that limits the running time of stoppable requests; the product's default if
    /// `None`.
    pub termination: Option<PartChoice>,
    /// The principal that is charged for a request without a proven session.
    pub charge: Charge,
    /// Whether the gateway assumes that the application notices departures. If not, it holds the
    /// slot until the application is done.
    pub departures: Departures,
    /// Classes that are throttled.
    pub throttles: Vec<Throttle>,
    /// Its line in the file, if it comes from one.
    pub line: Option<usize>,
}

impl PolicyChoice {
    /// Returns the policy with these parameters and defaults for everything else.
    pub fn of(name: &str, parameters: BTreeMap<String, String>) -> Self {
        Self {
            name: name.to_owned(),
            label: name.to_owned(),
            parameters,
            limit: None,
            termination: None,
            charge: Charge::default(),
            departures: Departures::default(),
            throttles: Vec::new(),
            line: None,
        }
    }
}

/// The principal that is charged for a request without a proven session: the gateway's
/// `identify.charge`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Charge {
    /// No principal: many visitors may share an address.
    #[default]
    Session,
    /// The address. Simulated visitors have one each, which is the best case for this choice.
    Address,
}

/// A limit or termination policy to run, with the parameters that differ from their defaults.
#[derive(Clone, Debug)]
pub struct PartChoice {
    /// The name in the catalogue.
    pub name: String,
    /// Parameters as text, by name.
    pub parameters: BTreeMap<String, String>,
}

/// The length of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Length {
    /// Sessions arrive for this long.
    Duration(Span),
    /// Sessions arrive until an ideal policy would have confirmed this many orders, over all seeds
    /// of a cell.
    Orders(u64),
}

/// An error in a scenario file.
#[derive(Debug, thiserror::Error)]
pub enum ScenarioError {
    /// The file could not be read.
    #[error("cannot read {path}: {source}")]
    Unreadable {
        /// The path of the file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// The text is not TOML, or has an unknown key or a value of the wrong type. The message has
    /// line and column.
    #[error("{0}")]
    Malformed(#[from] toml::de::Error),
    /// The values are well-formed but make no sense.
    #[error("{0}")]
    Senseless(String),
    /// The base of the scenario is invalid.
    #[error("in its base {}: {source}", path.display())]
    Base {
        /// The path of the base.
        path: PathBuf,
        /// The error in the base.
        source: Box<Self>,
    },
}

impl Scenario {
    /// The longest time during which visitors may arrive, a year. Beyond it moments could no longer
    /// be told apart.
    pub const LONGEST: Span = Span::from_secs(366 * 24 * 3600);

    /// Reads a scenario file.
    pub fn read(path: &Path) -> Result<Self, ScenarioError> {
        Self::parse(&Self::text(path)?, path.parent().unwrap_or(Path::new(".")))
    }

    /// Reads the text of a scenario file, of a bounded size.
    pub fn text(path: &Path) -> Result<String, ScenarioError> {
        written::read_bounded(path)
    }

    /// Parses a scenario. Its base and its file of arrival times are relative to `folder`.
    pub fn parse(text: &str, folder: &Path) -> Result<Self, ScenarioError> {
        written::resolve(base::read(text, folder)?, folder, &Lines::of(text))
    }

    /// Returns the seeds to run.
    pub fn seed_numbers(&self) -> impl Iterator<Item = u64> + use<> {
        (self.first_seed..).take(self.seeds as usize)
    }

    /// Returns the session rate at ρ = 1.
    pub fn unit_rate(&self) -> Rate {
        let work = self.graph.work_per_session(&self.classes).unwrap_or(Span::MAX);
        Rate::per_second(f64::from(self.workers) / work.as_secs_f64())
    }

    /// Returns the expected number of sessions in one seed of a run at level `rho`.
    pub fn sessions(&self, rho: f64) -> f64 {
        let duration = self.duration(rho);
        match &self.profile {
            Profile::Times(times) => {
                times.partition_point(|start| *start <= Time::ZERO + duration) as f64
            }
            profile => self.unit_rate().get() * profile.load(rho, duration),
        }
    }

    /// Returns the highest rate of session starts; zero for a list of times, as nothing is drawn.
    pub fn peak_rate(&self, rho: f64) -> Rate {
        match &self.profile {
            Profile::Times(_) => Rate::per_second(0.0),
            profile => Rate::per_second(self.unit_rate().get() * profile.peak(rho)),
        }
    }

    /// Returns the first class of a session that starts at `now`.
    pub fn start_at(&self, now: Time) -> usize {
        let begun = self.starts.iter().rev().find(|(at, _)| Time::ZERO + *at <= now);
        begun.map_or(self.graph.start, |(_, class)| *class)
    }

    /// Returns whether servers or session starts change during the run. Only the simulator can run
    /// such changes.
    pub fn changes(&self) -> bool {
        !self.servers.changes.is_empty() || !self.starts.is_empty()
    }

    /// Returns how long sessions arrive in one seed of a run at level `rho`.
    pub fn duration(&self, rho: f64) -> Span {
        match self.length {
            Length::Duration(span) => span,
            Length::Orders(orders) => {
                let per_session = self.graph.orders_per_session().unwrap_or(0.0);
                let per_second = self.unit_rate().get() * rho.min(1.0) * per_session;
                let each = orders as f64 / f64::from(self.seeds.max(1));
                Span::from_secs_f64(each / per_second)
            }
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
