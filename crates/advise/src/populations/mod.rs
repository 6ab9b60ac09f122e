//! The populations of clients, and those that read one page a visit as scrapers do.
//!
//! A population is all clients whose user agents are of one family. A scraper with one address for
//! each request has no address that stands out, but its population does: hardly any of its visits
//! read on. Names say nothing, because user agents are forged. The figures are those by which the
//! gateway ranks first requests (`docs/reference/policies.md`, «Populations»), except that a log
//! has the user agent only, and the gateway sees the whole head of a request.
//!
//! Clients choose their user agents, so the number of populations is bounded. When all places are
//! taken, the half with the fewest requests join the population of all others. Families of which
//! hardly any visit reads on, and that are too small for a row of their own, count as one. So a
//! scraper gains nothing from many different user agents.

mod family;
mod sketches;
mod visits;

use std::collections::HashMap;

use bywash_units::Time;
use serde::Serialize;

use crate::request::{Client, Request};
use family::family;
use sketches::{Addresses, Sample, Targets, hash};
use visits::Visits;

/// The maximum number of populations that are told apart. All others are one population.
const MOST: usize = 4096;
/// The minimum share of the page requests, or of their cost, of a population with a row of its own.
const LISTED: f64 = 0.01;
/// The number of visits that read on from which a population counts on its own, as in the gateway.
const KNOWN: f64 = 5.0;
/// The number of visits that read on, by which each population is assumed to be like all others, as
/// in the gateway.
const PRIOR: f64 = 5.0;
/// The lift below which a population reads one page a visit. The gateway ranks its first requests
/// at least two levels below those of readers.
const LOW_LIFT: f64 = 0.35;
/// The minimum number of visits of a population that reads one page a visit. The gateway ignores
/// lifts before it has seen as many. A lower lift than [`LOW_LIFT`] also needs 9.3 visits that would
/// have read on. If the population were like all others, the probability of that lift would be
/// e⁻⁹·³, or 1 in 11,000.
const MIN_VISITS: f64 = 100.0;
/// The minimum share of the page requests, or of their cost, of a population that reads one page a
/// visit. A smaller one does not load the site.
const MIN_SHARE: f64 = 0.05;

/// The populations of clients that the log shows.
#[derive(Clone, Debug, Serialize)]
pub struct Populations {
    /// The fraction of all visits that read on: their client got a page, and sent another request.
    pub reads_on: f64,
    /// Whether the log has files. A visit reads on if its client requests a file of its page.
    pub has_files: bool,
    /// Whether the cost is service time. Otherwise each page request costs the same, because the
    /// log has no durations.
    pub has_times: bool,
    /// The share of the page requests of all populations that read one page a visit.
    pub share_behind: f64,
    /// The share of the cost of all populations that read one page a visit.
    pub cost_behind: f64,
    /// The populations with at least 1 % of the page requests or of their cost, the one with the
    /// highest cost first. All families of which fewer than five visits read on, and that are
    /// smaller, are one population.
    pub listed: Vec<Population>,
    /// The number of families that are in no listed population.
    pub unlisted: usize,
}

/// A population of clients.
#[derive(Clone, Debug, Serialize)]
pub struct Population {
    /// The user agent with `#` for each number. It is empty for requests without a user agent, and
    /// `None` for families that count as one.
    pub family: Option<String>,
    /// Whether a user agent declares a robot: it has the name of a robot, or a URL.
    pub is_declared: bool,
    /// Whether the population reads one page a visit, and is large enough to load the site.
    pub reads_one_page: bool,
    /// The number of requests, including files.
    pub requests: u64,
    /// The population's share of all page requests.
    pub share: f64,
    /// The population's share of the cost of all page requests.
    pub of_cost: f64,
    /// The number of addresses, to about 3 %.
    pub addresses: u64,
    /// The number of requests per address.
    pub per_address: f64,
    /// The number of visits that got a page.
    pub visits: u64,
    /// The fraction of the visits that read on.
    pub reads_on: f64,
    /// The fraction of the visits that read on, compared to that of all visits, as in the gateway.
    pub lift: f64,
    /// The share of the page requests for pages that fewer than ten other clients asked for.
    pub spread: f64,
}

impl Populations {
    /// Describes the populations that read one page a visit as one line of text, or returns `None`
    /// if there are none.
    pub fn finding(&self) -> Option<String> {
        let found = self.listed.iter().filter(|one| one.reads_one_page).count();
        let cost = if self.has_times {
            format!(" and {:.0} % of their service time", 100.0 * self.cost_behind)
        } else {
            String::new()
        };
        let noun = if found == 1 { "population reads" } else { "populations read" };
        let share = 100.0 * self.share_behind;
        (found > 0).then(|| {
            format!("{found} {noun} one page a visit: {share:.0} % of the page requests{cost}.")
        })
    }
}

/// The counts of one population.
#[derive(Clone, Debug, Default)]
struct Counts {
    is_declared: bool,
    requests: u64,
    pages: f64,
    seconds: f64,
    visits: f64,
    read_on: f64,
    addresses: Addresses,
    sample: Sample,
    /// The number of requests for pages that few clients asked for, computed at the end.
    rare: f64,
}

impl Counts {
    fn absorb(&mut self, other: &Self) {
        self.requests += other.requests;
        self.pages += other.pages;
        self.seconds += other.seconds;
        self.visits += other.visits;
        self.read_on += other.read_on;
        self.rare += other.rare;
        self.addresses.absorb(&other.addresses);
        self.sample.absorb(&other.sample);
    }

    const fn cost(&self, has_times: bool) -> f64 {
        if has_times { self.seconds } else { self.pages }
    }

    /// Returns whether this population has at least a share `least` of the page requests or of
    /// their cost.
    fn has_share(&self, least: f64, all: &Self, has_times: bool) -> bool {
        self.pages >= least * all.pages.max(1.0)
            || self.cost(has_times) >= least * all.cost(has_times).max(f64::MIN_POSITIVE)
    }

    fn population(&self, family: Option<String>, all: &Self, has_times: bool) -> Population {
        let part = |of: f64, all: f64| if all > 0.0 { of / all } else { 0.0 };
        let lift = (self.read_on + PRIOR) / (self.visits * part(all.read_on, all.visits) + PRIOR);
        let addresses = self.addresses.count().min(self.requests as f64).round();
        let is_large = self.visits >= MIN_VISITS && self.has_share(MIN_SHARE, all, has_times);
        Population {
            family,
            is_declared: self.is_declared,
            reads_one_page: is_large && lift < LOW_LIFT,
            requests: self.requests,
            share: part(self.pages, all.pages),
            of_cost: part(self.cost(has_times), all.cost(has_times)),
            addresses: addresses as u64,
            per_address: part(self.requests as f64, addresses),
            visits: self.visits as u64,
            reads_on: part(self.read_on, self.visits).min(1.0),
            lift,
            spread: part(self.rare, self.pages),
        }
    }
}

/// Counts the requests of each population.
#[derive(Debug, Default)]
pub(crate) struct PopulationCounts {
    known: HashMap<Box<str>, Counts>,
    others: Counts,
    visits: Visits,
    targets: Targets,
    /// The family of the present request. The text is kept only to reuse its memory.
    family: String,
    has_agents: bool,
    has_files: bool,
}

impl PopulationCounts {
    /// Adds a request with a plausible time. `now` is the time of the log's clock.
    pub(crate) fn add(&mut self, request: &Request<'_>, is_file: bool, now: Time) {
        let agent = request.agent.filter(|agent| *agent != "-").unwrap_or_default();
        self.has_agents |= !agent.is_empty();
        self.has_files |= is_file;
        family(agent, &mut self.family);
        let client = (request.client != Client::Untold).then(|| request.client.number());
        let step = client.map(|client| self.visits.step(client, request, is_file, now));
        let target = (!is_file).then(|| hash(request.target));
        if let Some(target) = target {
            self.targets.add(target, client.unwrap_or_default());
        }
        let counts = self.counts();
        counts.is_declared |= request.is_of_robot() || agent.contains("://");
        counts.requests += 1;
        if let Some(step) = step {
            counts.addresses.add(request.client.address());
            counts.visits += f64::from(step.begins);
            counts.read_on += f64::from(step.reads_on);
        }
        if let Some(target) = target {
            counts.pages += 1.0;
            counts.seconds += request.service.unwrap_or_default().as_secs_f64();
            counts.sample.add(target);
        }
    }

    /// Returns the counts of the present family. If its place is not taken yet and all places are,
    /// the half with the fewest requests lose theirs.
    fn counts(&mut self) -> &mut Counts {
        if !self.known.contains_key(&*self.family) && self.known.len() >= MOST {
            let mut requests: Vec<u64> = self.known.values().map(|one| one.requests).collect();
            let median = *requests.select_nth_unstable(MOST / 2).1;
            for (_, few) in self.known.extract_if(|_, one| one.requests <= median) {
                self.others.absorb(&few);
            }
        }
        // `entry` would need a new key for each request.
        if !self.known.contains_key(&*self.family) {
            self.known.insert(self.family.as_str().into(), Counts::default());
        }
        self.known.get_mut(&*self.family).unwrap_or(&mut self.others)
    }

    pub(crate) fn end_visits(&mut self) {
        self.visits = Visits::default();
    }

    /// Returns the populations; `None` if no line has a user agent.
    pub(crate) fn populations(&mut self) -> Option<Populations> {
        let mut all = Counts::default();
        for counts in self.known.values_mut().chain([&mut self.others]) {
            counts.rare = counts.pages * counts.sample.rare(&self.targets);
            all.pages += counts.pages;
            all.seconds += counts.seconds;
            all.visits += counts.visits;
            all.read_on += counts.read_on;
        }
        let has_times = all.seconds > 0.0;
        let (mut few, mut own) = (std::mem::take(&mut self.others), Vec::new());
        let mut unlisted = 0;
        for (family, counts) in &self.known {
            if counts.has_share(LISTED, &all, has_times) {
                own.push(counts.population(Some(family.to_string()), &all, has_times));
            } else if counts.read_on < KNOWN {
                few.absorb(counts);
            } else {
                unlisted += 1;
            }
        }
        if few.requests > 0 {
            own.push(few.population(None, &all, has_times));
        }
        own.sort_by(|a, b| b.of_cost.total_cmp(&a.of_cost).then_with(|| a.family.cmp(&b.family)));
        let behind = |share: fn(&Population) -> f64| {
            own.iter().filter(|one| one.reads_one_page).map(share).sum()
        };
        self.has_agents.then_some(Populations {
            reads_on: if all.visits > 0.0 { all.read_on / all.visits } else { 0.0 },
            has_files: self.has_files,
            has_times,
            share_behind: behind(|one| one.share),
            cost_behind: behind(|one| one.of_cost),
            listed: own,
            unlisted,
        })
    }
}

#[cfg(test)]
mod tests;
