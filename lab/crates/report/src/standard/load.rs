//! The section of a report that shows useful work and revenue against the offered load. If there is
//! only one offered load, the section shows orders.

use bywash_scenario::{Closes, ResultRow, RunResult};

use super::{closes, policies};
use crate::figure::{Axis, Bars, Curves, Point, Reference, Series, Svg, bars, curves};
use crate::number::short;
use crate::page::{Block, Section};

pub(super) fn against_load(result: &RunResult) -> Section {
    let revenue = |closes| {
        let error = |cell: &ResultRow| cell.revenue_error;
        let y = ("Revenue", "confirmed orders, % of the bound");
        load_curves(result, closes, y, |cell| cell.revenue_share, error)
    };
    let useful = |closes| {
        let y = ("Useful work", "service time answered in time, % of the possible");
        load_curves(result, closes, y, |cell| cell.useful_work, |cell| cell.useful_error)
    };
    let closes = closes(result);
    let figures = closes.iter().map(|closes| revenue(*closes));
    let figures = figures.chain(closes.iter().map(|closes| useful(*closes)));
    Section {
        heading: "Against offered load".into(),
        prose:
            "A policy whose curve stays high further to the right bears more overload. A whisker \
             is the standard error over the seeds."
                .into(),
        body: figures.map(Block::Figure).collect(),
    }
}

fn load_curves(
    result: &RunResult,
    closes: Closes,
    (title, measure): (&str, &str),
    value: fn(&ResultRow) -> f64,
    error: fn(&ResultRow) -> Option<f64>,
) -> Svg {
    let series = |policy: &str| {
        let mine = |cell: &&ResultRow| cell.policy == policy && cell.closes == closes;
        let mut points: Vec<Point> = result
            .cells
            .iter()
            .filter(mine)
            .map(|cell| Point {
                x: cell.rho,
                y: value(cell) * 100.0,
                error: error(cell).map(|error| error * 100.0),
            })
            .collect();
        points.sort_by(|a, b| a.x.total_cmp(&b.x));
        Series { label: policy.to_owned(), points }
    };
    curves(&Curves {
        title: format!("{title}, closes {closes}"),
        x: Axis { title: "offered load ρ (1 = capacity)".into(), ..Axis::default() },
        y: Axis { title: measure.into(), cover: vec![0.0, 100.0], ..Axis::default() },
        series: policies(result).into_iter().map(series).collect(),
        reference: Some(Reference { value: 1.0, label: "capacity".into() }),
    })
}

pub(super) fn orders(result: &RunResult) -> Section {
    let closes = closes(result);
    let group = |policy: &str| {
        let of = |closes: &Closes| {
            let mine = |cell: &&ResultRow| cell.policy == policy && cell.closes == *closes;
            result.cells.iter().find(mine).map_or(f64::NAN, |cell| cell.orders as f64)
        };
        (policy.to_owned(), closes.iter().map(of).collect())
    };
    let figure = bars(&Bars {
        title: "Orders confirmed".into(),
        axis: Axis { title: "orders confirmed, all seeds".into(), ..Axis::default() },
        series: closes.iter().map(|closes| format!("closes {closes}")).collect(),
        groups: policies(result).into_iter().map(group).collect(),
        reference: bound(result),
    });
    Section { heading: "Orders".into(), prose: String::new(), body: vec![Block::Figure(figure)] }
}

/// Returns the number of possible orders as a reference line. Returns `None` unless every row had
/// the same visitors.
fn bound(result: &RunResult) -> Option<Reference> {
    let first = result.cells.first()?.orders_possible;
    let same = |cell: &ResultRow| (cell.orders_possible - first).abs() <= 0.005 * first;
    result
        .cells
        .iter()
        .all(same)
        .then(|| Reference { value: first, label: format!("possible: {}", short(first, 0)) })
}
