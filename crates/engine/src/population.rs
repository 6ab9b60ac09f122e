//! The populations of clients, by which first requests of new sessions rank.
//!
//! Source: `policies.md` §1, «Populations». A new session has proven nothing, and a client with a
//! new address for each request has no history. But requests of one program look alike: the fields
//! of their heads, the names in them, the network. A driver hashes these into a [`PopulationKey`],
//! and all new sessions with the same key are one population.
//!
//! A session *reads on* if it asks for another page after its first one. The *lift* of a population
//! is the fraction of its sessions that read on, divided by that fraction of all sessions. While
//! requests wait, populations with a higher lift come first. Only factors of two count, so
//! populations that differ by chance rank alike. A program that requests one page in each session
//! gets what the others leave, whatever the number of its addresses. A client that reads on as
//! visitors do is served as one.
//!
//! A population is *known* once some of its sessions have read on. All others count as one, so a
//! program gains nothing from many different heads. Populations of visitors become known in calm
//! weather, when no request has to wait. Lifts change slowly: an attacker has to be served for
//! minutes to lower the lift of visitors whose heads it copies.
//!
//! The driver must not let clients choose their keys freely: a key must be a hash under a secret.

use alloc::vec::Vec;

use bywash_units::{Time, TimeSpan};
use hashbrown::HashMap;

use crate::request::PopulationKey;
use crate::session::{KeyHasher, SPARE};

/// The number of levels by which populations rank.
pub(crate) const LEVELS: usize = 8;
/// The lift from which on a population has the best level. Each level below is for half the lift.
const BEST: f64 = 0.7;

/// The maximum number of populations that are told apart. All others are one population.
const MOST: usize = 4096;
/// The index of the population of all others.
const UNKNOWN: usize = 0;
/// The interval at which earlier sessions lose weight and lifts are computed.
const TICK: TimeSpan = TimeSpan::from_secs(1);
/// The time after which a session weighs half, in seconds.
const HALF_LIFE: f64 = 6.0 * 3600.0;
/// The number of sessions that have read on from which a population is known.
const KNOWN: f64 = 5.0;
/// The number of sessions that read on, by which each population is assumed to be like all others.
const PRIOR: f64 = 5.0;
/// The minimum number of sessions of all populations before lifts count.
const FEW: f64 = 100.0;
/// The bounds of a lift.
const LIFTS: (f64, f64) = (1.0 / 256.0, 4.0);
/// The factor by which a lift may grow or shrink in a second: two in a minute.
const SPEED: f64 = 1.011_619_440_301_923;

#[derive(Clone, Copy, Debug)]
struct Population {
    /// The key; `None` for all others together.
    key: Option<PopulationKey>,
    /// The number of sessions that have begun.
    sessions: f64,
    /// The number of these that have read on.
    read_on: f64,
    lift: f64,
}

impl Population {
    /// Creates a population that has not been seen, with the lift of unknown ones.
    const fn new(key: Option<PopulationKey>, lift: f64) -> Self {
        Self { key, sessions: 0.0, read_on: 0.0, lift }
    }
}

/// The populations that have been seen. See the documentation of the module.
#[derive(Debug)]
pub(crate) struct Populations {
    indices: HashMap<PopulationKey, u32, KeyHasher>,
    /// The first one is for all others together.
    known: Vec<Population>,
    ticked: Time,
}

impl Populations {
    pub(crate) fn new() -> Self {
        let known = Vec::from([Population::new(None, 1.0)]);
        Self { indices: HashMap::with_hasher(KeyHasher), known, ticked: Time::ZERO }
    }

    /// Returns the level of a population: 0 for one whose sessions read on as often as others, and
    /// one more for each factor of two below. A request without a population has level 0.
    pub(crate) fn level(&self, key: Option<PopulationKey>) -> usize {
        let Some(key) = key else { return 0 };
        let index = self.indices.get(&key).map_or(UNKNOWN, |index| *index as usize);
        let lift = self.known[index].lift;
        let (mut level, mut bound) = (0, BEST);
        while lift < bound && level < LEVELS - 1 {
            (level, bound) = (level + 1, bound / 2.0);
        }
        level
    }

    /// Notes that a session has begun with an answer to a request of this population.
    pub(crate) fn began(&mut self, key: Option<PopulationKey>) {
        if let Some(key) = key {
            self.of(key).sessions += 1.0;
        }
    }

    /// Notes that a session of this population asks for another page after its first one.
    pub(crate) fn read_on(&mut self, key: Option<PopulationKey>) {
        if let Some(key) = key {
            self.of(key).read_on += 1.0;
        }
    }

    fn of(&mut self, key: PopulationKey) -> &mut Population {
        let index = match self.indices.get(&key) {
            Some(index) => *index as usize,
            None if self.known.len() <= MOST => {
                if self.indices.is_empty() {
                    // A driver that tells no populations apart needs no memory for them.
                    self.indices.reserve(MOST * SPARE);
                    self.known.reserve(MOST);
                }
                self.indices.insert(key, self.known.len() as u32);
                self.known.push(Population::new(Some(key), self.known[UNKNOWN].lift));
                self.known.len() - 1
            }
            None => UNKNOWN,
        };
        &mut self.known[index]
    }

    /// Reduces the weight of earlier sessions once in each second, and computes the lifts.
    pub(crate) fn tick(&mut self, now: Time) {
        let since = now.since(self.ticked);
        if since < TICK {
            return;
        }
        self.ticked = now;
        let seconds = since.as_secs_f64();
        let (kept, change) = (libm::exp2(-seconds / HALF_LIFE), libm::pow(SPEED, seconds));
        let (mut all, mut unknown) = ((0.0, 0.0), (0.0, 0.0));
        for (index, population) in self.known.iter_mut().enumerate() {
            population.sessions *= kept;
            population.read_on *= kept;
            let Population { sessions, read_on, .. } = *population;
            all = (all.0 + sessions, all.1 + read_on);
            if index == UNKNOWN || read_on < KNOWN {
                unknown = (unknown.0 + sessions, unknown.1 + read_on);
            }
        }
        let mean = if all.0 >= FEW { all.1 / all.0 } else { 0.0 };
        let mut lift_of_unknown = 1.0;
        for (index, population) in self.known.iter_mut().enumerate() {
            if index != UNKNOWN && population.read_on < KNOWN {
                // Once it is known, its lift changes from here.
                population.lift = lift_of_unknown;
                continue;
            }
            let own = (population.sessions, population.read_on);
            let (sessions, read_on) = if index == UNKNOWN { unknown } else { own };
            let lift = if mean > 0.0 { (read_on + PRIOR) / (sessions * mean + PRIOR) } else { 1.0 };
            let lift = lift.clamp(population.lift / change, population.lift * change);
            population.lift = lift.clamp(LIFTS.0, LIFTS.1);
            if index == UNKNOWN {
                lift_of_unknown = population.lift;
            }
        }
        self.forget_idle();
    }

    /// Forgets populations about which hardly anything is known any more, if half of the places are
    /// taken.
    fn forget_idle(&mut self) {
        if self.known.len() <= MOST / 2 {
            return;
        }
        let mut index = 1;
        while index < self.known.len() {
            let Population { key, sessions, .. } = self.known[index];
            if sessions >= 0.5 {
                index += 1;
                continue;
            }
            self.known.swap_remove(index);
            if let Some(key) = key {
                self.indices.remove(&key);
            }
            if let Some(Population { key: Some(moved), .. }) = self.known.get(index) {
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
        (0..sessions).for_each(|_| all.began(Some(PopulationKey(number))));
        (0..read_on).for_each(|_| all.read_on(Some(PopulationKey(number))));
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
    fn a_lift_changes_no_faster_than_its_bound() {
        let mut all = Populations::new();
        add(&mut all, 0, 1000, 900);
        add(&mut all, 1, 100_000, 10);
        all.tick(at(60));
        assert!((all.known[2].lift - 0.5).abs() < 1e-6, "{}", all.known[2].lift);
        all.tick(at(120));
        assert!((all.known[2].lift - 0.25).abs() < 1e-6, "{}", all.known[2].lift);
    }

    #[test]
    fn clients_beyond_the_table_count_with_the_unknown_ones() {
        let mut all = Populations::new();
        (0..MOST as u64).for_each(|number| add(&mut all, number, 1, 0));
        add(&mut all, MOST as u64, 4_000, 4_000);
        after_ten_minutes(&mut all);
        assert_eq!(level(&all, MOST as u64), 0);
        add(&mut all, MOST as u64, 1_000_000, 0);
        (601..=1_200).for_each(|second| all.tick(at(second)));
        assert_eq!(level(&all, 7), 0, "all of them are the only population");
    }

    #[test]
    fn the_table_is_bounded_and_forgets_what_is_over() {
        let mut all = Populations::new();
        (0..3 * MOST as u64).for_each(|number| add(&mut all, number, 1, 0));
        assert_eq!((all.known.len(), all.indices.len()), (MOST + 1, MOST));
        add(&mut all, 7, 5, 0);
        all.tick(at(2 * HALF_LIFE as u64));
        assert_eq!((all.known.len(), all.indices.len()), (2, 1));
        assert_eq!(all.indices.get(&PopulationKey(7)), Some(&1));
        add(&mut all, 8, 1, 0);
        assert_eq!(all.known.len(), 3);
    }
}
