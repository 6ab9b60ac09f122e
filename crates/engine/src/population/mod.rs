//! The populations of clients, by which first requests of new sessions rank.
//!
//! Source: `policies.md` §1, «Populations». A new session has proven nothing, and a client with a
//! new address for each request has no history. But requests of one program look alike: the fields
//! of their heads, and the names in them. A driver hashes these into a [`PopulationKey`], and all
//! new sessions with the same key are one population.
//!
//! A session *reads on* if it asks for anything after its first request that is not known to be a
//! part of a page. The *lift* of a population is the fraction of its sessions that read on, divided
//! by that fraction of all sessions. While requests wait, populations with a higher lift come first.
//! Only factors of two count, so populations that differ by chance rank alike. A program that
//! requests one page in each session gets what the others leave, whatever the number of its
//! addresses. A client that reads on as visitors do is served as one.
//!
//! A session here is a *visit*: the requests of one client, each within [`VISIT`] of the one
//! before. The driver tells clients apart by [`VisitorKey`], not by their cookies, because visitors
//! who return none are visitors as well. A visit begins with the first request that gets a slot,
//! whatever comes of it: a client that leaves early has not read on either. A redirection begins no
//! visit, so that a client that follows it has not read on. A part of a page begins none either.
//!
//! First requests also rank by their targets (`targets`): the lift of a population is multiplied by
//! that of the group of the visit's first target.
//!
//! A population is *known* once some of its sessions have read on. All others count as one, so a
//! program gains nothing from many different heads. Once nearly all sessions that read on are in
//! known populations, unknown ones rank at least a level below the best. So an unknown program has
//! no rank to lose when it attacks. Populations of visitors become known in calm weather, when no
//! request has to wait. Lifts change slowly: an attacker has to be served for minutes to lower the
//! lift of visitors whose heads it copies. The fraction of all sessions, to which lifts refer, grows
//! more slowly still. Otherwise a program that reads on more often than people would soon rank
//! before them. A full table gives up populations that are not known, those with few requests first.
//!
//! The driver must not let clients choose their keys freely: a key must be a hash under a secret.

use alloc::vec::Vec;

use bywash_units::{Time, TimeSpan};
use hashbrown::HashMap;

use crate::recent::Recent;
use crate::request::{PopulationKey, TargetKey, VisitorKey};
use crate::session::{KeyHasher, SPARE};

mod remembered;
mod targets;

pub use remembered::RememberedPopulations;
pub(crate) use targets::TargetGroup;
use targets::Targets;

/// The number of levels by which populations rank.
pub(crate) const LEVELS: usize = 8;
/// The worst level of a population. The best one is 0.
pub const MAX_POPULATION_LEVEL: usize = LEVELS - 1;
/// The lift from which on a population has the best level. Each level below is for half the lift.
const BEST: f64 = 0.7;

/// The maximum number of populations that are told apart. All others are one population.
const MOST: usize = 4096;
/// The index of the population of all others.
const UNKNOWN: usize = 0;
/// The number of places that a new population of a full table may take. It takes the one with the
/// fewest requests.
const PROBES: usize = 8;
/// The interval at which earlier sessions lose weight and lifts are computed.
const TICK: TimeSpan = TimeSpan::from_secs(1);
/// The time after which a session weighs half, in seconds.
const HALF_LIFE: f64 = 6.0 * 3600.0;
/// The time after which a request weighs half in the counts that describe the load, in seconds.
const HALF_LIFE_OF_LOAD: f64 = 600.0;
/// The number of sessions that have read on from which a population is known.
const KNOWN: f64 = 5.0;
/// The number of sessions that have read on below which a known population is unknown again.
const STILL_KNOWN: f64 = 2.5;
/// The number of sessions that read on, by which each population is assumed to be like all others.
const PRIOR: f64 = 5.0;
/// The minimum number of sessions of all populations before lifts count.
const FEW: f64 = 100.0;
/// The maximum lift by which populations rank that are not known, if visitors are in known ones.
const MOST_UNKNOWN: f64 = 0.5;
/// The maximum fraction of the sessions that read on that are in unknown populations, if visitors
/// are in known ones.
const FEW_UNKNOWN: f64 = 0.1;
/// The bounds of a lift.
const LIFTS: (f64, f64) = (1.0 / 256.0, 4.0);
/// The factor by which a lift may grow or shrink in a second: two in a minute.
const SPEED: f64 = 1.011_619_440_301_923;
/// The factor by which the fraction of all sessions that read on may grow in a second, as lifts
/// refer to it: two in [`HALF_LIFE`].
const SPEED_OF_MEAN: f64 = 1.000_032_090_662_142_5;
/// The maximum time between two requests of a visit.
const VISIT: TimeSpan = TimeSpan::from_secs(600);
/// The maximum number of visits that are remembered.
const VISITS: usize = 8192;

/// The numbers of a population. All of them but the lift lose weight over time: those of
/// sessions half in six hours, all others half in ten minutes.
#[derive(Clone, Copy, Debug)]
pub struct Population {
    /// The key; `None` for all others together.
    pub key: Option<PopulationKey>,
    /// The number of sessions that have begun.
    pub sessions: f64,
    /// The number of these that have read on.
    pub read_on: f64,
    /// The fraction of its sessions that read on, divided by that fraction of all sessions.
    pub lift: f64,
    /// The number of first requests.
    pub requested: f64,
    /// The number of these that got a slot.
    pub started: f64,
    /// The number of these that were refused.
    pub refused: f64,
    /// The time for which first requests held slots, in seconds.
    pub seconds: f64,
    /// Whether the lift is the population's own. It is that of unknown ones at first.
    has_own_lift: bool,
}

impl Population {
    /// Creates a population that has not been seen, with the lift of unknown ones.
    const fn new(key: Option<PopulationKey>, lift: f64) -> Self {
        let (sessions, read_on, requested, started, refused, seconds) =
            (0.0, 0.0, 0.0, 0.0, 0.0, 0.0);
        let has_own_lift = false;
        Self { key, sessions, read_on, lift, requested, started, refused, seconds, has_own_lift }
    }

    /// Returns whether enough of its sessions have read on to rank the population by itself.
    pub fn is_known(&self) -> bool {
        let enough = if self.has_own_lift { STILL_KNOWN } else { KNOWN };
        self.key.is_some() && self.read_on >= enough
    }

    /// Returns the level by which its first requests rank: 0 if its sessions read on as often as
    /// others, and one more for each factor of two below.
    pub fn level(&self) -> usize {
        level(self.lift)
    }

    /// Adds the numbers of a population that loses its place in the table.
    fn add(&mut self, other: &Self) {
        self.sessions += other.sessions;
        self.read_on += other.read_on;
        self.requested += other.requested;
        self.started += other.started;
        self.refused += other.refused;
        self.seconds += other.seconds;
    }

    /// Reduces the weight of what was counted earlier, by these factors.
    fn fade(&mut self, sessions: f64, load: f64) {
        self.sessions *= sessions;
        self.read_on *= sessions;
        for number in [&mut self.requested, &mut self.started, &mut self.refused, &mut self.seconds]
        {
            *number *= load;
        }
    }
}

/// Returns the level of a lift.
fn level(lift: f64) -> usize {
    let (mut level, mut bound) = (0, BEST);
    while lift < bound && level < LEVELS - 1 {
        (level, bound) = (level + 1, bound / 2.0);
    }
    level
}

/// Returns the factor by which a number shrinks in a time, if it shrinks to half in `half_life`
/// seconds.
fn fading(time: TimeSpan, half_life: f64) -> f64 {
    libm::exp2(-time.as_secs_f64() / half_life)
}

/// The visit of a client.
#[derive(Clone, Copy, Debug)]
struct Visit {
    population: PopulationKey,
    /// The group of its first target; `None` if that does not count.
    target: Option<TargetGroup>,
    /// The probability that it would read on, by the lift of its population.
    expected: f64,
    state: VisitState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum VisitState {
    /// The client has asked for nothing more yet.
    Begun,
    /// The client has read on.
    ReadOn,
    /// The answer is not a page, so the next request begins the visit again.
    Redirected,
}

/// The populations that have been seen. See the documentation of the module.
#[derive(Debug)]
pub(crate) struct Populations {
    indices: HashMap<PopulationKey, u32, KeyHasher>,
    /// The first one is for all others together.
    all: Vec<Population>,
    /// The place of a full table that was examined last.
    examined: usize,
    visits: Recent<VisitorKey, Visit>,
    targets: Targets,
    /// The fraction of all sessions that read on, to which lifts refer; zero while it is unknown.
    mean: f64,
    /// The lift of all unknown populations together, which may be above [`MOST_UNKNOWN`].
    lift_of_unknown: f64,
    /// The levels that operators have set, by population.
    ranked: Vec<(PopulationKey, usize)>,
    ticked: Time,
}

impl Populations {
    pub(crate) fn new() -> Self {
        Self {
            indices: HashMap::with_hasher(KeyHasher),
            all: Vec::from([Population::new(None, 1.0)]),
            examined: UNKNOWN,
            visits: Recent::new(VISITS, VISIT),
            targets: Targets::new(),
            mean: 0.0,
            lift_of_unknown: 1.0,
            ranked: Vec::new(),
            ticked: Time::ZERO,
        }
    }

    /// Returns all populations. The first one is for all others together.
    pub(crate) fn all(&self) -> &[Population] {
        &self.all
    }

    /// Returns the level of a request by the lifts of its population and of its target's group.
    /// A request without a population has level 0.
    pub(crate) fn level(&self, key: Option<PopulationKey>, group: Option<TargetGroup>) -> usize {
        let Some(key) = key else { return 0 };
        let ranked = self.ranked.binary_search_by_key(&key.0, |(ranked, _)| ranked.0);
        let of_target = group.map_or(1.0, |group| self.targets.lift(group));
        let lift = self.all[self.index(key)].lift * of_target;
        ranked.map_or_else(|_| level(lift), |index| self.ranked[index].1)
    }

    /// Returns the group of a target by how many visits have begun with it. Returns `None` if the
    /// driver tells no targets apart, or if lifts do not count yet.
    pub(crate) fn group(&self, target: Option<TargetKey>) -> Option<TargetGroup> {
        target.filter(|_| self.mean > 0.0).map(|target| self.targets.group(target))
    }

    /// Sets the levels of these populations, in place of those that follow from their lifts. The
    /// first level of a population counts.
    pub(crate) fn rank(&mut self, mut ranked: Vec<(PopulationKey, usize)>) {
        for (_, level) in &mut ranked {
            *level = (*level).min(LEVELS - 1);
        }
        ranked.sort_by_key(|(key, _)| key.0);
        ranked.dedup_by_key(|(key, _)| *key);
        self.ranked = ranked;
    }

    /// Returns whether a client is on a visit, so that its requests rank by that visit.
    pub(crate) fn is_on_visit(&self, now: Time, visitor: VisitorKey) -> bool {
        let visit = self.visits.get(now, visitor);
        visit.is_some_and(|visit| visit.state != VisitState::Redirected)
    }

    /// Notes that a client asks for something. `part` says that it is a part of a page. Returns the
    /// population of the client's visit and the group of the visit's first target, if it has a visit.
    pub(crate) fn asks(
        &mut self,
        now: Time,
        visitor: Option<VisitorKey>,
        part: bool,
    ) -> Option<(PopulationKey, Option<TargetGroup>)> {
        let visitor = visitor?;
        let visit = self.visits.get(now, visitor)?;
        if visit.state == VisitState::Redirected {
            return None;
        }
        let reads_on = visit.state == VisitState::Begun && !part;
        if reads_on {
            self.of(visit.population).read_on += 1.0;
            if let Some(group) = visit.target {
                self.targets.read_on(group);
            }
        }
        let state = if reads_on { VisitState::ReadOn } else { visit.state };
        self.visits.note(now, visitor, Visit { state, ..visit });
        Some((visit.population, visit.target))
    }

    /// Notes a first request.
    pub(crate) fn requested(&mut self, key: Option<PopulationKey>) {
        if let Some(key) = key {
            self.of(key).requested += 1.0;
        }
    }

    /// Notes that a first request has got a slot.
    pub(crate) fn started(&mut self, key: Option<PopulationKey>) {
        if let Some(key) = key {
            self.of(key).started += 1.0;
        }
    }

    /// Begins a visit with a request that has got a slot, unless its client has one.
    pub(crate) fn begin_visit(
        &mut self,
        now: Time,
        key: Option<PopulationKey>,
        visitor: Option<VisitorKey>,
        target: Option<TargetKey>,
    ) {
        let Some(population) = key else { return };
        let visit = visitor.and_then(|visitor| self.visits.get(now, visitor));
        if visit.is_some_and(|visit| visit.state != VisitState::Redirected) {
            return;
        }
        self.of(population).sessions += 1.0;
        let (group, expected) = (self.group(target), self.mean * self.of(population).lift);
        if let Some(group) = group {
            self.targets.began(group, expected);
        }
        if let Some(target) = target {
            self.targets.begun_with(now, target);
        }
        if let Some(visitor) = visitor {
            let state = VisitState::Begun;
            self.visits.note(now, visitor, Visit { population, target: group, expected, state });
        }
    }

    /// Notes that the answer to a client is not a page.
    pub(crate) fn redirected(&mut self, now: Time, visitor: Option<VisitorKey>) {
        let Some(visitor) = visitor else { return };
        let visit = self.visits.get(now, visitor);
        if let Some(visit) = visit.filter(|visit| visit.state == VisitState::Begun) {
            let sessions = &mut self.of(visit.population).sessions;
            *sessions = (*sessions - 1.0).max(0.0);
            if let Some(group) = visit.target {
                self.targets.began(group, -visit.expected);
            }
            self.visits.note(now, visitor, Visit { state: VisitState::Redirected, ..visit });
        }
    }

    /// Notes that a first request was refused.
    pub(crate) fn refused(&mut self, key: Option<PopulationKey>) {
        if let Some(key) = key {
            self.of(key).refused += 1.0;
        }
    }

    /// Notes that a first request has held a slot for a time.
    pub(crate) fn worked(&mut self, key: Option<PopulationKey>, time: TimeSpan) {
        if let Some(key) = key {
            self.of(key).seconds += time.as_secs_f64();
        }
    }

    /// Returns the index of a population. A population without a place has that of all others.
    fn index(&self, key: PopulationKey) -> usize {
        self.indices.get(&key).map_or(UNKNOWN, |index| *index as usize)
    }

    /// Returns a population, which gets a place if it has none.
    fn of(&mut self, key: PopulationKey) -> &mut Population {
        let mut index = self.index(key);
        if index == UNKNOWN {
            index = self.place_for(key);
        }
        &mut self.all[index]
    }

    /// Gives a population a place, and returns its index. Returns that of all others if the table
    /// is full of known populations.
    fn place_for(&mut self, key: PopulationKey) -> usize {
        let new = Population::new(Some(key), self.all[UNKNOWN].lift);
        if self.all.len() <= MOST {
            if self.indices.is_empty() {
                // A driver that tells no populations apart needs no memory for them.
                self.indices.reserve(MOST * SPARE);
                self.all.reserve(MOST);
            }
            self.indices.insert(key, self.all.len() as u32);
            self.all.push(new);
            return self.all.len() - 1;
        }
        let places = (1..=PROBES).map(|step| 1 + (self.examined + step) % MOST);
        let requested = |index: &usize| self.all[*index].requested + self.all[*index].sessions;
        let by_requests = |one: &usize, other: &usize| requested(one).total_cmp(&requested(other));
        let place = places.filter(|index| !self.all[*index].is_known()).min_by(by_requests);
        self.examined += PROBES;
        let Some(index) = place else { return UNKNOWN };
        let former = core::mem::replace(&mut self.all[index], new);
        if let Some(former) = former.key {
            self.indices.remove(&former);
        }
        self.indices.insert(key, index as u32);
        self.all[UNKNOWN].add(&former);
        index
    }

    /// Reduces the weight of earlier sessions once in each second, and computes the lifts.
    pub(crate) fn tick(&mut self, now: Time) {
        let since = now.since(self.ticked);
        if since < TICK {
            return;
        }
        self.ticked = now;
        let (of_sessions, of_load) = (fading(since, HALF_LIFE), fading(since, HALF_LIFE_OF_LOAD));
        let change = libm::pow(SPEED, since.as_secs_f64());
        let (mut all, mut unknown) = ((0.0, 0.0), (0.0, 0.0));
        for (index, population) in self.all.iter_mut().enumerate() {
            population.fade(of_sessions, of_load);
            let Population { sessions, read_on, .. } = *population;
            all = (all.0 + sessions, all.1 + read_on);
            if index == UNKNOWN || !population.is_known() {
                unknown = (unknown.0 + sessions, unknown.1 + read_on);
            }
        }
        let mean = if all.0 >= FEW { (all.1 / all.0).min(1.0) } else { self.mean };
        let slowly = libm::pow(SPEED_OF_MEAN, since.as_secs_f64());
        self.mean = if self.mean > 0.0 { mean.min(self.mean * slowly) } else { mean };
        let mean = self.mean;
        let lift = |(sessions, read_on): (f64, f64), before: f64| {
            let lift = if mean > 0.0 { (read_on + PRIOR) / (sessions * mean + PRIOR) } else { 1.0 };
            lift.clamp(before / change, before * change).clamp(LIFTS.0, LIFTS.1)
        };
        self.lift_of_unknown = lift(unknown, self.lift_of_unknown);
        let nearly_all_known = mean > 0.0 && unknown.1 <= FEW_UNKNOWN * all.1;
        let most = if nearly_all_known { MOST_UNKNOWN } else { 1.0 };
        for (index, population) in self.all.iter_mut().enumerate() {
            let is_known = index != UNKNOWN && population.is_known();
            let before =
                if population.has_own_lift { population.lift } else { self.lift_of_unknown };
            population.has_own_lift = is_known;
            population.lift = if is_known {
                lift((population.sessions, population.read_on), before)
            } else {
                self.lift_of_unknown.min(most)
            };
        }
        self.targets.tick(since);
        self.forget_idle();
    }

    /// Forgets populations about which hardly anything is known any more, if half of the places are
    /// taken.
    fn forget_idle(&mut self) {
        if self.all.len() <= MOST / 2 {
            return;
        }
        let mut index = UNKNOWN + 1;
        while index < self.all.len() {
            let Population { key, sessions, requested, .. } = self.all[index];
            if sessions + requested >= 0.5 {
                index += 1;
                continue;
            }
            self.all.swap_remove(index);
            if let Some(key) = key {
                self.indices.remove(&key);
            }
            if let Some(Population { key: Some(moved), .. }) = self.all.get(index) {
                self.indices.insert(*moved, index as u32);
            }
        }
    }
}

#[cfg(test)]
mod tests;
