//! The routes that are distinguished: those on which most time is spent. The number of requests
//! does not matter, because an elephant may be rare.
//!
//! Clients choose what they request, so there may be millions of routes. Up to [`MOST_KNOWN`]
//! routes are watched, and up to [`MOST_COLUMNS`] of them have a column of their own in the
//! statistics. A route's weight is the time spent on its requests. A watched route that becomes
//! much heavier than the lightest route with a column takes over that column. The evidence of the
//! lighter route then joins that of all others.
//!
//! When the list of watched routes is full, a new route evicts the lightest one and begins with its
//! weight. So no heavy route is missed (Metwally, Agrawal and El Abbadi 2005, Space-Saving). A
//! stream of new names evicts light routes, but costs no memory.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec;
use alloc::vec::Vec;

use bywash_units::TimeSpan;

use crate::columns::{Column, MOST_COLUMNS};

/// The maximum number of routes that are watched.
pub const MOST_KNOWN: usize = 4096;
/// The factor by which a route must be heavier than another to take over that route's column. The
/// factor keeps columns from changing back and forth.
const HEAVIER: f64 = 1.5;

#[derive(Clone, Debug)]
struct Known {
    column: Option<Column>,
    /// The total time of the route's requests in seconds; older requests count less.
    weight: f64,
}

/// The routes that are watched, with their columns. See the module documentation. `K` is the type
/// of a route's name.
#[derive(Clone, Debug)]
pub struct Routes<K> {
    known: BTreeMap<K, Known>,
    /// The watched routes that have no column of their own in the statistics, in ascending order of
    /// weight.
    without: BTreeSet<(Weight, K)>,
    /// The name of the route of each column; `None` if the column is free.
    names: Vec<Option<K>>,
}

/// A weight as an integer, which sorts like the weight because weights are never negative.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Weight(u64);

impl Weight {
    const fn of(seconds: f64) -> Self {
        Self(seconds.to_bits())
    }
}

impl<K: Ord + Clone> Default for Routes<K> {
    fn default() -> Self {
        Self { known: BTreeMap::new(), without: BTreeSet::new(), names: vec![None; MOST_COLUMNS] }
    }
}

impl<K: Ord + Clone> Routes<K> {
    /// Counts a request that took `took`, and returns the column of its route. Routes without a
    /// column of their own share the column for all others.
    pub fn column(&mut self, route: &K, took: TimeSpan) -> Column {
        let seconds = took.as_secs_f64();
        if let Some(known) = self.known.get_mut(route) {
            let before = Weight::of(known.weight);
            known.weight += seconds;
            if known.column.is_none() {
                self.without.remove(&(before, route.clone()));
                self.without.insert((Weight::of(known.weight), route.clone()));
            }
            return known.column.unwrap_or(Column::OTHER);
        }
        let free = self.names.iter().position(Option::is_none);
        let column = free.and_then(Column::new);
        let is_full = self.known.len() >= MOST_KNOWN;
        let weight = seconds + if is_full { self.forget_lightest() } else { 0.0 };
        match free {
            Some(index) => self.names[index] = Some(route.clone()),
            None => _ = self.without.insert((Weight::of(weight), route.clone())),
        }
        self.known.insert(route.clone(), Known { column, weight });
        column.unwrap_or(Column::OTHER)
    }

    /// Forgets the lightest watched route without a column, and returns its weight.
    fn forget_lightest(&mut self) -> f64 {
        let lightest = self.without.pop_first();
        lightest.and_then(|(_, route)| self.known.remove(&route)).map_or(0.0, |known| known.weight)
    }

    /// Multiplies all weights by `fading`, and gives the columns of light routes to heavy ones.
    /// Returns the columns that changed their route. The caller must [fold](crate::Discovery::fold)
    /// them before the next request.
    #[must_use]
    pub fn weigh(&mut self, fading: f64) -> Vec<Column> {
        self.known.values_mut().for_each(|known| known.weight *= fading);
        let (mut with, mut without): (Vec<_>, Vec<_>) = self
            .known
            .iter()
            .map(|(route, known)| (known.weight, route.clone(), known.column))
            .partition(|(_, _, column)| column.is_some());
        with.sort_by(|a, b| a.0.total_cmp(&b.0));
        without.sort_by(|a, b| b.0.total_cmp(&a.0));
        let mut folded = Vec::new();
        for ((light, loses, column), (heavy, wins, _)) in with.iter().zip(&without) {
            let Some((column, index)) = column.and_then(|column| Some((column, column.number()?)))
            else {
                continue;
            };
            if *heavy <= HEAVIER * light {
                break;
            }
            self.names[index] = Some(wins.clone());
            self.known.get_mut(loses).into_iter().for_each(|known| known.column = None);
            self.known.get_mut(wins).into_iter().for_each(|known| known.column = Some(column));
            folded.push(column);
        }
        let without = self.known.iter().filter(|(_, known)| known.column.is_none());
        self.without =
            without.map(|(route, known)| (Weight::of(known.weight), route.clone())).collect();
        folded
    }

    /// Forgets a route that no longer exists. Returns its column, if it had one. The caller must
    /// [fold](crate::Discovery::fold) that column before the next request.
    pub fn forget(&mut self, route: &K) -> Option<Column> {
        let known = self.known.remove(route)?;
        if let Some(index) = known.column.and_then(Column::number) {
            self.names[index] = None;
        } else {
            self.without.remove(&(Weight::of(known.weight), route.clone()));
        }
        known.column
    }

    /// Returns the number of routes that are watched.
    pub fn known(&self) -> usize {
        self.known.len()
    }

    /// Returns all routes that are watched, heaviest first.
    pub fn by_weight(&self) -> Vec<&K> {
        let mut all: Vec<_> = self.known.iter().collect();
        all.sort_by(|a, b| b.1.weight.total_cmp(&a.1.weight));
        all.into_iter().map(|(route, _)| route).collect()
    }

    /// Returns the name of the route with this column; `None` for a free column and the column of
    /// all others.
    pub fn name(&self, column: Column) -> Option<&K> {
        self.names.get(column.number()?)?.as_ref()
    }

    /// Returns the column of a route; `None` if the route has no column of its own.
    pub fn of(&self, route: &K) -> Option<Column> {
        self.known.get(route)?.column
    }
}
