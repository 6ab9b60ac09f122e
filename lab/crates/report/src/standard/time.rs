//! The sections of a report about time: runs second by second, and response times.

use bywash_scenario::{Closes, EmpiricalCdf, ResultRow, RunResult, TierResponses};

use super::{MOST_OPEN, closes, levels, name};
use crate::figure::{Axis, Ceiling, Curves, Point, Series, Svg, Timeline, curves, timeline};
use crate::number::short;
use crate::page::{Block, Section};

/// The maximum number of classes in a figure of response times. More lines are hard to tell apart.
const MOST_CLASSES: usize = 12;

pub(super) fn second_by_second(result: &RunResult) -> Option<Section> {
    let with = || result.cells.iter().filter(|cell| !cell.timeline.is_empty());
    if with().count() == 0 {
        return None;
    }
    let runs = result.seeds.len();
    let few = with().count() <= MOST_OPEN;
    let block = |cell: &ResultRow| {
        let title = name(cell);
        // Figures of the same offered load are adjacent, so they get the same axes.
        let peers = with().filter(|peer| peer.rho.total_cmp(&cell.rho).is_eq());
        let ceilings = peers.map(|peer| Ceiling::of(&peer.timeline, runs));
        let ceiling = ceilings.fold(Ceiling::default(), Ceiling::max);
        let figure = Block::Figure(timeline(&Timeline {
            title: &title,
            seconds: &cell.timeline,
            runs,
            phases: &[],
            ceiling,
        }));
        if few { figure } else { Block::Details { summary: title, body: vec![figure] } }
    };
    Some(Section {
        heading: "Second by second".into(),
        prose: "How many requests ended in each second, and with which outcome: the mean over the \
                seeds. Figures of one load have the same axes."
            .into(),
        body: with().map(block).collect(),
    })
}

/// A tier of [`TierResponses`]: its name, and a function that returns its distribution.
type Tier = (&'static str, fn(&TierResponses) -> &EmpiricalCdf);

const TIERS: [Tier; 3] = [
    ("all requests", |response| &response.all),
    ("transactions", |response| &response.transactions),
    ("browsing", |response| &response.browsing),
];

/// Returns a section with a figure for each offered load and visibility of closes. Each figure has
/// a line for each policy. Returns `None` if no row has response times.
pub(super) fn response_times(result: &RunResult) -> Option<Section> {
    let mut figures = Vec::new();
    for closes in closes(result) {
        for rho in levels(result) {
            figures.extend(TIERS.iter().filter_map(|tier| within(result, (rho, closes), *tier)));
        }
    }
    // For each offered load and visibility of closes, there is a figure of all requests, followed
    // by a figure of each tier. The figures of tiers are folded. If there are many figures, all of
    // them are folded.
    let few = figures.len() <= MOST_OPEN * TIERS.len();
    let block = |figure: Svg| {
        if few && figure.title().ends_with(TIERS[0].0) {
            return Block::Figure(figure);
        }
        Block::Details { summary: figure.title().to_owned(), body: vec![Block::Figure(figure)] }
    };
    if figures.is_empty() {
        return None;
    }
    Some(Section {
        heading: "Response times".into(),
        prose:
            "The share of the completed requests that was answered within a time. A policy that \
             completes fewer requests may look quicker, because requests without an answer are not \
             counted."
                .into(),
        body: figures.into_iter().map(block).collect(),
    })
}

fn within(result: &RunResult, (rho, closes): (f64, Closes), (tier, of): Tier) -> Option<Svg> {
    let mine = |cell: &&ResultRow| cell.rho.total_cmp(&rho).is_eq() && cell.closes == closes;
    let drawn = |cell: &&ResultRow| !of(&cell.response).is_empty();
    let cells = result.cells.iter().filter(mine).filter(drawn);
    let series: Vec<Series> =
        cells.map(|cell| distribution(&cell.policy, of(&cell.response))).collect();
    let title = format!("Response times at ρ = {}, closes {closes}: {tier}", short(rho, 2));
    (!series.is_empty()).then(|| distributions(title, series))
}

/// Returns a figure of the response times of one row, with a line for each class. Returns `None`
/// unless 2 to [`MOST_CLASSES`] classes completed a request.
pub(super) fn by_class(cell: &ResultRow) -> Option<Svg> {
    let drawn = cell.classes.iter().filter(|class| !class.response.is_empty());
    let series: Vec<Series> =
        drawn.map(|class| distribution(&class.class, &class.response)).collect();
    let title = format!("Response times by class: {}", name(cell));
    (2..=MOST_CLASSES).contains(&series.len()).then(|| distributions(title, series))
}

fn distribution(label: &str, response: &EmpiricalCdf) -> Series {
    let point = |&(ms, share): &(f64, f64)| Point { x: ms, y: share * 100.0, error: None };
    Series { label: label.to_owned(), points: response.0.iter().map(point).collect() }
}

fn distributions(title: String, series: Vec<Series>) -> Svg {
    curves(&Curves {
        title,
        x: Axis { title: "response time, ms".into(), log: true, ..Axis::default() },
        y: Axis {
            title: "answered within, % of the completed".into(),
            cover: vec![0.0, 100.0],
            ..Axis::default()
        },
        series,
        reference: None,
    })
}
