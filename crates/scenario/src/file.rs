//! A scenario: what a file says, resolved (class names are indices, spans are spans) and consistent.
//!
//! How it is written is the private business of `written` and `base`.

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

/// A load, ready to be played.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Its name, as in the file.
    pub name: String,
    /// One line: what it is and where it comes from.
    pub about: String,
    /// Requests that the servers run at once.
    pub workers: u32,
    /// What else is known of the servers.
    pub servers: Servers,
    /// How long a request may wait for a worker; `None` for as long as its client does.
    pub max_wait: Option<Span>,
    /// How many sessions are remembered; `None` for as many as the gateway's default.
    pub sessions: Option<u32>,
    /// Kinds of request, in the order of the file.
    pub classes: Vec<Class>,
    /// What sessions do.
    pub graph: Graph,
    /// From when sessions start at another class than the graph says, in the order of time.
    pub starts: Vec<(Span, usize)>,
    /// How load goes over time.
    pub profile: Profile,
    /// Where visitors come from.
    pub source: Source,
    /// The levels of ρ to run, one cell each.
    pub rho: Vec<f64>,
    /// How clients behave.
    pub client: Client,
    /// What some visitors show from their first request on, in the order of the file.
    pub signals: Vec<Signal>,
    /// Clients who are always there, instead of visitors who arrive. Only the simulator and a live run of a site
    /// that is not compared can play them.
    pub sets: Vec<ClientSet>,
    /// Whether the server side can see a client leave; one cell each.
    pub closes: Vec<Closes>,
    /// Who means harm. Only the simulator can play them.
    pub adversaries: Vec<Adversary>,
    /// The policies to run, one cell each.
    pub policies: Vec<PolicyChoice>,
    /// Seeds to run and to average over.
    pub seeds: u32,
    /// The first of them; the others follow it.
    pub first_seed: u64,
    /// How long arrivals go on.
    pub length: Length,
}

/// A kind of request.
#[derive(Clone, Debug)]
pub struct Class {
    /// Its name.
    pub name: String,
    /// HTTP method of a live run.
    pub method: String,
    /// Path and query of a live run.
    pub path: String,
    /// Form that a live run sends, as `application/x-www-form-urlencoded`; empty for none.
    pub form: String,
    /// The only status of a live run that counts as an answer; any of 2xx and 3xx if not given.
    pub status: Option<u16>,
    /// Whether it earns or looks.
    pub tier: Tier,
    /// Worth, for the policies that use it.
    pub utility: Utility,
    /// Places in its queue, for the policies that have one per class.
    pub queue: Option<u32>,
    /// Indices of the classes of which a session must have been served one before this class
    /// counts as a transaction.
    pub after: Vec<usize>,
    /// Service demand.
    pub service: Service,
    /// Another one for a while.
    pub shift: Option<Shift>,
    /// Least and most of what is granted to its requests, if they may be stopped while they run.
    pub stop: Option<(Span, Span)>,
    /// What an answer brings, if it is an order.
    pub earns: Utility,
    /// What it is worth, if that is not to be learned.
    pub pinned: Option<Utility>,
    /// Pause behind it; as behind everything else if not given.
    pub think: Option<Law>,
    /// How long a client waits for this; as for everything else if not given.
    pub patience: Option<Law>,
    /// Where it is served: an index of `servers.stations`, or the workers of the application.
    pub station: Option<usize>,
    /// Its tasks and threads, where `servers.threads` runs them.
    pub parallel: Parallel,
}

impl Class {
    /// What a request asks for whose session begins at `now`.
    pub fn service_at(&self, now: Time) -> &Service {
        let shift = self.shift.as_ref().filter(|shift| shift.is_on(now));
        shift.map_or(&self.service, |shift| &shift.service)
    }
}

/// `transact` earns, `browse` looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Tier {
    /// Part of a purchase.
    Transact,
    /// Anything else.
    Browse,
}

/// Whether a client that closes its connection is noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Closes {
    /// It is: its request can be taken out of the queue or stopped.
    Visible,
    /// A hop in between hides it (a CDN, a pooling proxy): its request looks like any other.
    Hidden,
    /// It is while its request waits, for a slot or inside; what is being served is served to its end. Seed 4's
    /// database looks for a mark when a thread gets its turn, and not again [seed 4.6]. Only the simulator can play
    /// this.
    Waiting,
}

impl Closes {
    /// The word for it in files and results.
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

/// Until when a client's patience counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WaitsFor {
    /// The whole answer.
    #[default]
    Answer,
    /// The beginning of service: whoever is being served stays. Only the simulator can play this.
    Service,
}

/// How clients behave.
#[derive(Clone, Copy, Debug)]
pub struct Client {
    /// Pause between a page and the next request.
    pub think: Law,
    /// How long a client waits for an answer.
    pub patience: Law,
    /// What she waits for.
    pub waits_for: WaitsFor,
    /// Attempts at a request beyond the first; then the session is abandoned.
    pub retries: u32,
    /// Of these, how many may follow a refusal or an error: a refused client who does not come
    /// again has 0.
    pub retries_after_refusal: u32,
    /// Pause before the retry of a request that timed out.
    pub pause_after_timeout: Span,
    /// Pause before the retry of a request that was refused.
    pub pause_after_refusal: Law,
    /// Whether she waits, before that pause, as long as the refusal asked (`Retry-After`).
    pub keeps_retry_after: bool,
    /// Whether a repetition says that it is one.
    pub declares_retries: bool,
    /// Probability that a disappointed client gives up although retries are left.
    pub abandon: f64,
}

/// A policy to run, with the parameters that differ from their defaults.
#[derive(Clone, Debug)]
pub struct PolicyChoice {
    /// Name in the catalogue.
    pub name: String,
    /// Name in the result; the policy's own where the file gives none.
    pub label: String,
    /// Parameters as text, by name.
    pub parameters: BTreeMap<String, String>,
    /// What decides how many run at once; `servers.limit` if the file says nothing.
    pub limit: Option<PartChoice>,
    /// What decides how long a request may run that can be stopped; the product's own if the file says
    /// nothing.
    pub termination: Option<PartChoice>,
    /// Who answers for a request without a proven session.
    pub charge: Charge,
    /// Whether the gateway assumes that the application notices departures. If not, it holds the slot until the
    /// application is done.
    pub departures: Departures,
    /// Classes that are held back.
    pub throttles: Vec<Throttle>,
    /// Where it stands in the file, if there is one.
    pub line: Option<usize>,
}

impl PolicyChoice {
    /// With these parameters, the others and all else as they are by default.
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

/// Who answers for a request without a proven session: the gateway's `identify.charge`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Charge {
    /// Nobody: many visitors may share an address.
    #[default]
    Session,
    /// Its address. The simulator's visitors have one each, which is the best case for this.
    Address,
}

/// A limit or a termination to run, with the parameters that differ from their defaults.
#[derive(Clone, Debug)]
pub struct PartChoice {
    /// Name in the catalogue.
    pub name: String,
    /// Parameters as text, by name.
    pub parameters: BTreeMap<String, String>,
}

/// How long a run is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Length {
    /// Arrivals for so long.
    Duration(Span),
    /// Arrivals until an ideal policy would have confirmed so many orders, over all seeds of a
    /// cell.
    Orders(u64),
}

/// What is wrong with a scenario file.
#[derive(Debug, thiserror::Error)]
pub enum ScenarioError {
    /// The file could not be read.
    #[error("cannot read {path}: {source}")]
    Unreadable {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// Not TOML, an unknown key, a value of the wrong kind. The text has line and column.
    #[error("{0}")]
    Malformed(#[from] toml::de::Error),
    /// Well-formed, and makes no sense.
    #[error("{0}")]
    Senseless(String),
    /// It is based on a scenario that is wrong.
    #[error("in its base {}: {source}", path.display())]
    Base {
        /// The base.
        path: PathBuf,
        /// What is wrong with it.
        source: Box<Self>,
    },
}

impl Scenario {
    /// For no longer than a year do visitors come: beyond it moments would no longer be told apart.
    pub const LONGEST: Span = Span::from_secs(366 * 24 * 3600);

    /// Reads a scenario file.
    pub fn read(path: &Path) -> Result<Self, ScenarioError> {
        Self::parse(&Self::text(path)?, path.parent().unwrap_or(Path::new(".")))
    }

    /// Reads the text of a scenario file, of a bounded size.
    pub fn text(path: &Path) -> Result<String, ScenarioError> {
        written::read_bounded(path)
    }

    /// Reads a scenario from text; a base and a file of arrival times are looked for in `folder`.
    pub fn parse(text: &str, folder: &Path) -> Result<Self, ScenarioError> {
        written::resolve(base::read(text, folder)?, folder, &Lines::of(text))
    }

    /// The seeds to run.
    pub fn seed_numbers(&self) -> impl Iterator<Item = u64> + use<> {
        (self.first_seed..).take(self.seeds as usize)
    }

    /// Sessions per second that make ρ = 1.
    pub fn unit_rate(&self) -> Rate {
        let work = self.graph.work_per_session(&self.classes).unwrap_or(Span::MAX);
        Rate::per_second(f64::from(self.workers) / work.as_secs_f64())
    }

    /// Sessions that are expected to start in one seed of a run at level `rho`.
    pub fn sessions(&self, rho: f64) -> f64 {
        let duration = self.duration(rho);
        match &self.profile {
            Profile::Times(times) => {
                times.partition_point(|start| *start <= Time::ZERO + duration) as f64
            }
            profile => self.unit_rate().get() * profile.load(rho, duration),
        }
    }

    /// Sessions that start in a second at most; none where they are listed, as nothing is drawn.
    pub fn peak_rate(&self, rho: f64) -> Rate {
        match &self.profile {
            Profile::Times(_) => Rate::per_second(0.0),
            profile => Rate::per_second(self.unit_rate().get() * profile.peak(rho)),
        }
    }

    /// The class at which a session that starts at `now` starts.
    pub fn start_at(&self, now: Time) -> usize {
        let begun = self.starts.iter().rev().find(|(at, _)| Time::ZERO + *at <= now);
        begun.map_or(self.graph.start, |(_, class)| *class)
    }

    /// Whether servers or sessions change on the way, which only the simulator can play.
    pub fn changes(&self) -> bool {
        !self.servers.changes.is_empty() || !self.starts.is_empty()
    }

    /// How long arrivals go on in one seed of a run at level `rho`.
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
