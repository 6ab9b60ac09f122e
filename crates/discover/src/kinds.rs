//! Which kinds are told apart: those on which most time is spent, not those that come most often. An elephant may be
//! rare.
//!
//! Whoever sends requests names the kinds, so there may be millions. As many as [`MOST_COLUMNS`] have a column; as many
//! as [`MOST_KNOWN`] are watched, and one that has become heavier than the lightest with a column takes its place, whose
//! past is then of all others. Of those that are watched the lightest gives way to a new one, which begins with its
//! weight: so nothing heavy is missed (Metwally, Agrawal and El Abbadi 2005, Space-Saving), and a stream of new names
//! costs the light ones their place, and no memory.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec;
use alloc::vec::Vec;

use bywash_units::Span;

use crate::columns::{Column, MOST_COLUMNS};

/// Kinds that are watched.
pub const MOST_KNOWN: usize = 4096;
/// By how much heavier a kind must be than another to take its column: columns do not go to and fro.
const HEAVIER: f64 = 1.5;

#[derive(Clone, Debug)]
struct Known {
    column: Option<Column>,
    /// Seconds in flight, older ones counting less.
    weight: f64,
}

/// See the module. `K` is a kind's name.
#[derive(Clone, Debug)]
pub struct Kinds<K> {
    known: BTreeMap<K, Known>,
    /// Those without a column, the lightest first.
    without: BTreeSet<(Weight, K)>,
    /// Of each column.
    names: Vec<Option<K>>,
}

/// Not negative: such numbers are in the order of their bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Weight(u64);

impl Weight {
    const fn of(seconds: f64) -> Self {
        Self(seconds.to_bits())
    }
}

impl<K: Ord + Clone> Default for Kinds<K> {
    fn default() -> Self {
        Self { known: BTreeMap::new(), without: BTreeSet::new(), names: vec![None; MOST_COLUMNS] }
    }
}

impl<K: Ord + Clone> Kinds<K> {
    /// A request of this kind took so long.
    pub fn column(&mut self, kind: &K, took: Span) -> Column {
        let seconds = took.as_secs_f64();
        if let Some(known) = self.known.get_mut(kind) {
            let before = Weight::of(known.weight);
            known.weight += seconds;
            if known.column.is_none() {
                self.without.remove(&(before, kind.clone()));
                self.without.insert((Weight::of(known.weight), kind.clone()));
            }
            return known.column.unwrap_or(Column::OTHER);
        }
        let free = self.names.iter().position(Option::is_none);
        let column = free.and_then(Column::new);
        let is_full = self.known.len() >= MOST_KNOWN;
        let weight = seconds + if is_full { self.forget_lightest() } else { 0.0 };
        match free {
            Some(place) => self.names[place] = Some(kind.clone()),
            None => _ = self.without.insert((Weight::of(weight), kind.clone())),
        }
        self.known.insert(kind.clone(), Known { column, weight });
        column.unwrap_or(Column::OTHER)
    }

    /// Forgets the lightest without a column, and says how heavy it was.
    fn forget_lightest(&mut self) -> f64 {
        let lightest = self.without.pop_first();
        lightest.and_then(|(_, kind)| self.known.remove(&kind)).map_or(0.0, |known| known.weight)
    }

    /// What was is worth this part of itself from now on, and heavy kinds take the columns of light ones. Those columns
    /// are to be [folded](crate::Discovery::fold), before a request comes.
    #[must_use]
    pub fn weigh(&mut self, fading: f64) -> Vec<Column> {
        self.known.values_mut().for_each(|known| known.weight *= fading);
        let (mut with, mut without): (Vec<_>, Vec<_>) = self
            .known
            .iter()
            .map(|(kind, known)| (known.weight, kind.clone(), known.column))
            .partition(|(_, _, column)| column.is_some());
        with.sort_by(|a, b| a.0.total_cmp(&b.0));
        without.sort_by(|a, b| b.0.total_cmp(&a.0));
        let mut folded = Vec::new();
        for ((light, loses, column), (heavy, wins, _)) in with.iter().zip(&without) {
            let Some((column, place)) = column.and_then(|column| Some((column, column.number()?)))
            else {
                continue;
            };
            if *heavy <= HEAVIER * light {
                break;
            }
            self.names[place] = Some(wins.clone());
            self.known.get_mut(loses).into_iter().for_each(|known| known.column = None);
            self.known.get_mut(wins).into_iter().for_each(|known| known.column = Some(column));
            folded.push(column);
        }
        let without = self.known.iter().filter(|(_, known)| known.column.is_none());
        self.without =
            without.map(|(kind, known)| (Weight::of(known.weight), kind.clone())).collect();
        folded
    }

    /// There is no such kind any more. Its column, if it had one, is to be [folded](crate::Discovery::fold), before a
    /// request comes.
    pub fn forget(&mut self, kind: &K) -> Option<Column> {
        let known = self.known.remove(kind)?;
        if let Some(place) = known.column.and_then(Column::number) {
            self.names[place] = None;
        } else {
            self.without.remove(&(Weight::of(known.weight), kind.clone()));
        }
        known.column
    }

    /// Kinds that are watched.
    pub fn known(&self) -> usize {
        self.known.len()
    }

    /// All kinds that are watched, the heaviest first.
    pub fn by_weight(&self) -> Vec<&K> {
        let mut all: Vec<_> = self.known.iter().collect();
        all.sort_by(|a, b| b.1.weight.total_cmp(&a.1.weight));
        all.into_iter().map(|(kind, _)| kind).collect()
    }

    /// What has this column.
    pub fn name(&self, column: Column) -> Option<&K> {
        self.names.get(column.number()?)?.as_ref()
    }

    /// The column of a kind, if it has one.
    pub fn of(&self, kind: &K) -> Option<Column> {
        self.known.get(kind)?.column
    }
}
