//! The populations of clients, by which first requests of new sessions rank.
//!
//! Source: `policies.md` §1, «Populations». A new session has proven nothing, and a client with a
//! new address for each request has no history. But requests of one program look alike: the fields
//! of their heads, and the names in them. A driver hashes these into a [`PopulationKey`], and all
//! new sessions with the same key are one population.
//!
//! A session *reads on* if it asks for anything after its first page. The *lift* of a population is
//! the fraction of its sessions that read on, divided by that fraction of all sessions. While
//! requests wait, populations with a higher lift come first. Only factors of two count, so
//! populations that differ by chance rank alike. A program that requests one page in each session
//! gets what the others leave, whatever the number of its addresses. A client that reads on as
//! visitors do is served as one.
//!
//! A client without a cookie has no session. Its requests within [`VISIT`] of each other are a
//! *visit*, which counts as one session. The driver tells such clients apart by [`VisitorKey`].
//!
//! A population is *known* once some of its sessions have read on. All others count as one, so a
//! program gains nothing from many different heads. They rank at least a level below the best, so
//! an unknown program has no rank to lose when it attacks. Populations of visitors become known in
//! calm weather, when no request has to wait. Lifts change slowly: an attacker has to be served for
//! minutes to lower the lift of visitors whose heads it copies. A full table gives up populations
//! that are not known, those with few requests first.
//!
//! The driver must not let clients choose their keys freely: a key must be a hash under a secret.

use alloc::vec::Vec;

use bywash_units::{Time, TimeSpan};
use hashbrown::HashMap;

use crate::recent::Recent;
use crate::request::{PopulationKey, VisitorKey};
use crate::session::{KeyHasher, SPARE};

/// The number of levels by which populations rank.
pub(crate) const LEVELS: usize = 8;
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
/// The number of sessions that read on, by which each population is assumed to be like all others.
const PRIOR: f64 = 5.0;
/// The minimum number of sessions of all populations before lifts count.
const FEW: f64 = 100.0;
/// The maximum lift by which populations rank that are not known.
const MOST_UNKNOWN: f64 = 0.5;
/// The bounds of a lift.
const LIFTS: (f64, f64) = (1.0 / 256.0, 4.0);
/// The factor by which a lift may grow or shrink in a second: two in a minute.
const SPEED: f64 = 1.011_619_440_301_923;
/// The maximum time between two requests of a visit.
const VISIT: TimeSpan = TimeSpan::from_secs(600);
/// The maximum number of visits that are remembered.
const VISITS: usize = 8192;

/// What is known about a population. All numbers but the lift lose weight over time: those of
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

    /// Creates a population that an earlier process has seen, whose sessions have lost weight since
    /// for a time `age`. Returns `None` if the numbers cannot be those of a population.
    pub fn remembered(
        key: Option<PopulationKey>,
        [sessions, read_on, lift]: [f64; 3],
        age: TimeSpan,
    ) -> Option<Self> {
        let is_count = |number: f64| number.is_finite() && number >= 0.0;
        let is_lift = (LIFTS.0..=LIFTS.1).contains(&lift);
        if !is_count(sessions) || !is_count(read_on) || !is_lift {
            return None;
        }
        let mut population = Self { sessions, read_on, ..Self::new(key, lift) };
        population.fade(fading(age, HALF_LIFE), 0.0);
        population.has_own_lift = population.is_known();
        Some(population)
    }

    /// Returns whether enough of its sessions have read on to rank the population by itself.
    pub fn is_known(&self) -> bool {
        self.read_on >= KNOWN
    }

    /// Returns the level by which its first requests rank: 0 if its sessions read on as often as
    /// others, and one more for each factor of two below.
    pub fn level(&self) -> usize {
        let (mut level, mut bound) = (0, BEST);
        while self.lift < bound && level < LEVELS - 1 {
            (level, bound) = (level + 1, bound / 2.0);
        }
        level
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

/// Returns the factor by which a number shrinks in a time, if it shrinks to half in `half_life`
/// seconds.
fn fading(time: TimeSpan, half_life: f64) -> f64 {
    libm::exp2(-time.as_secs_f64() / half_life)
}

/// The visit of a client that shows no session.
#[derive(Clone, Copy, Debug)]
struct Visit {
    population: PopulationKey,
    has_read_on: bool,
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
    /// The lift of all unknown populations together, which may be above [`MOST_UNKNOWN`].
    lift_of_unknown: f64,
    /// The levels that operators have set.
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
            lift_of_unknown: 1.0,
            ranked: Vec::new(),
            ticked: Time::ZERO,
        }
    }

    /// Returns all populations. The first one is for all others together.
    pub(crate) fn all(&self) -> &[Population] {
        &self.all
    }

    /// Adds populations that an earlier process has seen. Call this before the first request.
    pub(crate) fn restore(&mut self, populations: &[Population]) {
        for population in populations {
            let own = match population.key {
                Some(key) => self.of(key),
                None => &mut self.all[UNKNOWN],
            };
            own.add(population);
            own.lift = population.lift;
            own.has_own_lift = population.has_own_lift;
            if population.key.is_none() {
                self.lift_of_unknown = population.lift;
            }
        }
    }

    /// Returns the level of a population; see [`Population::level`]. A request without a population
    /// has level 0.
    pub(crate) fn level(&self, key: Option<PopulationKey>) -> usize {
        let Some(key) = key else { return 0 };
        let ranked = self.ranked.iter().find(|(ranked, _)| *ranked == key);
        ranked.map_or_else(|| self.all[self.index(key)].level(), |(_, level)| *level)
    }

    /// Sets the levels of these populations, in place of those that follow from their lifts.
    pub(crate) fn rank(&mut self, mut ranked: Vec<(PopulationKey, usize)>) {
        ranked.iter_mut().for_each(|(_, level)| *level = (*level).min(LEVELS - 1));
        self.ranked = ranked;
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

    /// Notes that a first request was refused.
    pub(crate) fn refused(&mut self, key: Option<PopulationKey>) {
        if let Some(key) = key {
            self.of(key).refused += 1.0;
        }
    }

    /// Notes that a first request has held a slot for a time.
    pub(crate) fn worked(&mut self, key: PopulationKey, time: TimeSpan) {
        self.of(key).seconds += time.as_secs_f64();
    }

    /// Notes that a session may have begun with an answer to a request of this population. Returns
    /// whether it has: the client has no visit yet.
    pub(crate) fn begins(
        &mut self,
        now: Time,
        visitor: Option<VisitorKey>,
        key: Option<PopulationKey>,
    ) -> bool {
        let Some(population) = key else { return false };
        let visit = visitor.and_then(|visitor| self.visits.get(now, visitor));
        if let Some(visitor) = visitor {
            let begun = Visit { population, has_read_on: false };
            self.visits.note(now, visitor, visit.unwrap_or(begun));
        }
        if visit.is_none() {
            self.of(population).sessions += 1.0;
        }
        visit.is_none()
    }

    /// Notes that a client that shows no session asks for something.
    pub(crate) fn goes_on(&mut self, now: Time, visitor: Option<VisitorKey>) {
        let Some(visitor) = visitor else { return };
        let Some(visit) = self.visits.get(now, visitor).filter(|visit| !visit.has_read_on) else {
            return;
        };
        self.visits.note(now, visitor, Visit { has_read_on: true, ..visit });
        self.read_on(Some(visit.population));
    }

    /// Notes that a session of this population asks for something after its first page.
    pub(crate) fn read_on(&mut self, key: Option<PopulationKey>) {
        if let Some(key) = key {
            self.of(key).read_on += 1.0;
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
        let mean = if all.0 >= FEW { all.1 / all.0 } else { 0.0 };
        let lift = |(sessions, read_on): (f64, f64), before: f64| {
            let lift = if mean > 0.0 { (read_on + PRIOR) / (sessions * mean + PRIOR) } else { 1.0 };
            lift.clamp(before / change, before * change).clamp(LIFTS.0, LIFTS.1)
        };
        self.lift_of_unknown = lift(unknown, self.lift_of_unknown);
        let most = if mean > 0.0 { MOST_UNKNOWN } else { 1.0 };
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
mod tests {
    use super::*;

    fn at(seconds: u64) -> Time {
        Time::ZERO + TimeSpan::from_secs(seconds)
    }

    /// Adds sessions of a population, of which `read_on` read on.
    fn add(all: &mut Populations, number: u64, sessions: u32, read_on: u32) {
        let key = Some(PopulationKey(number));
        (0..sessions).for_each(|_| assert!(all.begins(Time::ZERO, None, key)));
        (0..read_on).for_each(|_| all.read_on(key));
    }

    fn level(all: &Populations, number: u64) -> usize {
        all.level(Some(PopulationKey(number)))
    }

    fn levels(all: &Populations, numbers: [u64; 4]) -> [usize; 4] {
        numbers.map(|number| level(all, number))
    }

    fn after_ten_minutes(all: &mut Populations) {
        (1..=600).for_each(|second| all.tick(at(second)));
    }

    #[test]
    fn a_population_that_reads_on_half_as_often_ranks_a_level_lower() {
        let mut all = Populations::new();
        for (number, read_on) in [(0, 800), (1, 600), (2, 300), (3, 60)] {
            add(&mut all, number, 1000, read_on);
        }
        assert_eq!(levels(&all, [0, 1, 2, 3]), [0; 4], "no lift is computed yet");
        after_ten_minutes(&mut all);
        assert_eq!(levels(&all, [0, 1, 2, 3]), [0, 0, 1, 3]);
        assert_eq!(all.level(None), 0);
    }

    #[test]
    fn populations_that_differ_by_chance_rank_alike() {
        let mut all = Populations::new();
        for (number, read_on) in [(0, 480), (1, 520), (2, 12), (3, 8)] {
            add(&mut all, number, if number < 2 { 1000 } else { 20 }, read_on);
        }
        after_ten_minutes(&mut all);
        assert_eq!(levels(&all, [0, 1, 2, 3]), [0; 4]);
    }

    #[test]
    fn populations_that_never_read_on_count_as_one() {
        let mut all = Populations::new();
        add(&mut all, 0, 1000, 500);
        (1..=50).for_each(|number| add(&mut all, number, 20, 0));
        after_ten_minutes(&mut all);
        assert_eq!(level(&all, 0), 0);
        let [one, other, unseen] = [1, 50, 51].map(|number| level(&all, number));
        assert!(one >= 5 && one == other && one == unseen, "{one}, {other}, {unseen}");
        // A population becomes known by its sessions, and its lift changes from that of unknown ones.
        add(&mut all, 1, 980, 980);
        assert_eq!(level(&all, 1), one);
        (601..=1_200).for_each(|second| all.tick(at(second)));
        assert!(level(&all, 1) == 0 && level(&all, 50) >= one);
    }

    #[test]
    fn an_unknown_population_ranks_behind_known_ones_from_its_first_request() {
        let mut all = Populations::new();
        add(&mut all, 0, 99, 50);
        all.tick(at(1));
        assert_eq!(levels(&all, [0, 1, 2, 3]), [0; 4], "too little is known");
        add(&mut all, 0, 10, 5);
        add(&mut all, 1, 1, 0);
        all.tick(at(2));
        assert_eq!(levels(&all, [0, 1, 2, 3]), [0, 1, 1, 1]);
        // It becomes known in calm weather, and then ranks with the others at once.
        add(&mut all, 1, 9, 6);
        all.tick(at(3));
        assert_eq!(levels(&all, [0, 1, 2, 3]), [0, 0, 1, 1]);
    }

    #[test]
    fn a_lift_changes_no_faster_than_its_bound() {
        let mut all = Populations::new();
        add(&mut all, 0, 1000, 900);
        add(&mut all, 1, 100_000, 10);
        all.tick(at(60));
        assert!((all.all[2].lift - 0.5).abs() < 1e-6, "{}", all.all[2].lift);
        all.tick(at(120));
        assert!((all.all[2].lift - 0.25).abs() < 1e-6, "{}", all.all[2].lift);
    }

    #[test]
    fn a_visit_is_one_session_and_reads_on_once() {
        let mut all = Populations::new();
        let (visitor, key) = (Some(VisitorKey(9)), Some(PopulationKey(1)));
        all.goes_on(at(0), visitor);
        assert!(all.begins(at(0), visitor, key), "nothing was answered before");
        for second in [1, 300, 800] {
            all.goes_on(at(second), visitor);
            assert!(!all.begins(at(second), visitor, key));
        }
        assert_eq!((all.all[1].sessions, all.all[1].read_on), (1.0, 1.0));
        // Another client, and the same one after a long time.
        assert!(all.begins(at(800), Some(VisitorKey(8)), key));
        all.goes_on(at(1_401), visitor);
        assert!(all.begins(at(1_401), visitor, key));
        assert_eq!((all.all[1].sessions, all.all[1].read_on), (3.0, 1.0));
    }

    #[test]
    fn a_full_table_gives_up_unknown_populations_with_few_requests() {
        let mut all = Populations::new();
        add(&mut all, 1, 10, 5);
        add(&mut all, 2, 500, 0);
        (10..10 + 3 * MOST as u64).for_each(|number| add(&mut all, number, 1, 0));
        assert_eq!((all.all.len(), all.indices.len()), (MOST + 1, MOST));
        let sessions = |number| all.all[all.index(PopulationKey(number))].sessions;
        assert_eq!((sessions(1), sessions(2), sessions(9 + 3 * MOST as u64)), (10.0, 500.0, 1.0));
        let total: f64 = all.all.iter().map(|population| population.sessions).sum();
        let lost = 510.0 + 3.0 * MOST as f64 - total;
        assert!(lost.abs() < 1e-6, "{lost} sessions are lost");
    }

    #[test]
    fn clients_beyond_a_table_of_known_populations_count_with_the_unknown_ones() {
        let mut all = Populations::new();
        (0..MOST as u64).for_each(|number| add(&mut all, number, 9, 9));
        add(&mut all, MOST as u64, 1_000_000, 0);
        assert!(all.all[UNKNOWN].sessions > 999_999.0);
        after_ten_minutes(&mut all);
        assert!(level(&all, MOST as u64) >= 5 && level(&all, 7) == 0);
    }

    #[test]
    fn operators_can_set_a_level() {
        let mut all = Populations::new();
        all.rank(Vec::from([(PopulationKey(1), 3), (PopulationKey(2), 99)]));
        assert_eq!(levels(&all, [0, 1, 2, 3]), [0, 3, LEVELS - 1, 0]);
        all.rank(Vec::new());
        assert_eq!(levels(&all, [0, 1, 2, 3]), [0; 4]);
    }

    #[test]
    fn populations_are_restored_with_their_lifts() {
        let half = TimeSpan::from_secs(HALF_LIFE as u64);
        let of = |key: Option<u64>, numbers| {
            Population::remembered(key.map(PopulationKey), numbers, half)
        };
        let saved = [
            of(Some(1), [2000.0, 1000.0, 1.0]),
            of(Some(2), [8000.0, 20.0, 0.01]),
            of(None, [10.0, 0.0, 0.02]),
        ];
        let mut all = Populations::new();
        all.restore(&saved.map(Option::unwrap));
        assert!((all.all[1].sessions - 1000.0).abs() < 1e-6);
        all.tick(at(1));
        assert_eq!(levels(&all, [1, 2, 3, 4]), [0, 7, 6, 6]);
        for numbers in [[f64::NAN, 0.0, 1.0], [1.0, -1.0, 1.0], [1.0, 1.0, 0.0], [1.0, 1.0, 5.0]] {
            assert!(of(Some(1), numbers).is_none(), "{numbers:?}");
        }
    }

    #[test]
    fn the_table_forgets_what_is_over() {
        let mut all = Populations::new();
        (0..MOST as u64).for_each(|number| add(&mut all, number, 1, 0));
        add(&mut all, 7, 5, 0);
        all.requested(Some(PopulationKey(7)));
        all.tick(at(2 * HALF_LIFE as u64));
        assert_eq!((all.all.len(), all.indices.len()), (2, 1));
        assert_eq!(all.indices.get(&PopulationKey(7)), Some(&1));
        assert!(all.all[1].requested < 1e-9 && (all.all[1].sessions - 1.5).abs() < 1e-6);
        add(&mut all, 8, 1, 0);
        assert_eq!(all.all.len(), 3);
    }
}
