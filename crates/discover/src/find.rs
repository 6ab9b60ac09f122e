//! The first stage: finds the few routes that may be elephants, the candidates.

use alloc::vec::Vec;

use crate::columns::Column;
use crate::nnls::nnls;
use crate::rows::Spread;
use crate::sums::{ALL, Sums};

/// The maximum number of candidates of one resource.
const MOST: usize = 8;
/// The minimum share of the resource's total use for a route to be a candidate.
const MIN_CANDIDATE_SHARE: f64 = 0.005;
/// The correlation of work above which two routes are twins: they cannot be distinguished.
const TWIN_CORRELATION: f64 = 0.95;

/// A candidate: a route, with the routes that always occur together with it.
#[derive(Clone, Debug)]
pub(crate) struct Candidate {
    pub(crate) column: Column,
    pub(crate) twins: Vec<Column>,
    /// The approximate share of the route in the resource's total use.
    pub(crate) share: f64,
}

/// Returns the routes that have any work in the sums.
pub(crate) fn seen(sums: &Sums) -> Vec<Column> {
    (0..ALL).map(Column::of_index).filter(|column| sums.work(*column) > 0.0).collect()
}

/// Returns the candidates of a resource, the largest share first. All other routes together are
/// never a candidate.
pub(crate) fn find(sums: &Sums, spread: Spread, resource: usize) -> Vec<Candidate> {
    let seen = seen(sums);
    let line = |j: &Column| seen.iter().map(move |k| (*j, *k)).collect::<Vec<_>>();
    let pairs = seen.iter().flat_map(line);
    let gram: Vec<f64> = pairs.map(|(j, k)| sums.products(spread, j, k)).collect();
    let right: Vec<f64> = seen.iter().map(|j| sums.cross(spread, *j, resource)).collect();
    let costs = nnls(&gram, &right);
    let used = sums.used(resource);
    let mut candidates: Vec<Candidate> = Vec::new();
    for (column, cost) in seen.iter().zip(costs) {
        let share = cost * sums.work(*column) / used;
        if *column != Column::OTHER && share > MIN_CANDIDATE_SHARE {
            candidates.push(Candidate { column: *column, twins: Vec::new(), share });
        }
    }
    candidates.sort_by(|a, b| b.share.total_cmp(&a.share));
    with_twins(sums, &seen, &candidates)
}

/// Adds to each candidate its twins: all routes from which it cannot be distinguished. A candidate
/// that is a twin of a larger candidate is removed.
fn with_twins(sums: &Sums, seen: &[Column], candidates: &[Candidate]) -> Vec<Candidate> {
    let mut alone: Vec<Candidate> = Vec::new();
    for candidate in candidates {
        if alone.iter().any(|other| other.twins.contains(&candidate.column)) {
            continue;
        }
        let is_twin = |column: &&Column| {
            **column != candidate.column
                && **column != Column::OTHER
                && sums.alike(candidate.column, **column) > TWIN_CORRELATION
        };
        let twins = seen.iter().filter(is_twin).copied().collect();
        alone.push(Candidate { twins, ..candidate.clone() });
        if alone.len() == MOST {
            break;
        }
    }
    alone
}
