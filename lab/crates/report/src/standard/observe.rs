//! The section of a report about policies in mode `observe`, next to enforced policies under the same
//! load.

use bywash_scenario::{Closes, ResultRow, RunResult};

use super::{closes, levels};
use crate::figure::{Axis, Bars, Svg, bars};
use crate::number::short;
use crate::page::{Block, Section};

/// A number of requests of a result row: its label, and a function that returns it.
type Measure = (&'static str, fn(&ResultRow) -> u64);

const MEASURES: [Measure; 3] = [
    ("answered in time", |cell| cell.completed),
    ("given up by their clients", |cell| cell.timed_out),
    ("refused, or would have been", |cell| {
        cell.dropped + cell.observed.map_or(0, |decisions| decisions.shed)
    }),
];

/// Returns a section with a figure for each level of load and visibility of closes at which a policy
/// was observed. Returns `None` if there is none.
pub(super) fn observed_and_enforced(result: &RunResult) -> Option<Section> {
    let mut figures = Vec::new();
    for closes in closes(result) {
        figures.extend(levels(result).into_iter().filter_map(|rho| figure(result, rho, closes)));
    }
    if figures.is_empty() {
        return None;
    }
    Some(Section {
        heading: "Observed and enforced".into(),
        prose: "The refusals of a policy in mode “observe” were only counted. The application got \
                all of its requests, so each refused one was also answered or given up."
            .into(),
        body: figures.into_iter().map(Block::Figure).collect(),
    })
}

fn figure(result: &RunResult, rho: f64, closes: Closes) -> Option<Svg> {
    let mine = |cell: &&ResultRow| cell.rho.total_cmp(&rho).is_eq() && cell.closes == closes;
    let cells: Vec<&ResultRow> = result.cells.iter().filter(mine).collect();
    if cells.iter().all(|cell| cell.observed.is_none()) {
        return None;
    }
    let group = |(label, count): &Measure| {
        ((*label).to_owned(), cells.iter().map(|cell| count(cell) as f64).collect())
    };
    Some(bars(&Bars {
        title: format!("Observed and enforced, ρ = {}, closes {closes}", short(rho, 2)),
        axis: Axis { title: "requests, all seeds".into(), ..Axis::default() },
        series: cells.iter().map(|cell| cell.policy.clone()).collect(),
        groups: MEASURES.iter().map(group).collect(),
        reference: None,
    }))
}
