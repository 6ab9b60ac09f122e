//! Draws figures of useful work and revenue against a varied key.
//!
//! A line shows one policy at one offered load, with departures of clients visible or hidden. If
//! several keys are varied, a point is the mean over the values of the other keys. If a value is
//! neither a number nor a time, the figure has bars instead of lines.

use bywash_report::figure::{Axis, Bars, Curves, Point, Series, Svg, bars, curves};
use bywash_report::{Block, Section};
use bywash_scenario::ResultRow;
use bywash_units::TimeSpan;

use super::Row;
use crate::args::Vary;

/// A share of a result row that is drawn. It consists of a title, a function that returns the
/// share, and a function that returns its standard error.
type Measure = (&'static str, fn(&ResultRow) -> f64, fn(&ResultRow) -> Option<f64>);

const MEASURES: [Measure; 2] = [
    ("useful work, % of the possible", |cell| cell.useful_work, |cell| cell.useful_error),
    ("revenue, % of the bound", |cell| cell.revenue_share, |cell| cell.revenue_error),
];

/// Returns the section with the figures of the varied key of index `key`.
pub(super) fn section(vary: &[Vary], key: usize, rows: &[Row]) -> Section {
    let others = "Each point is the mean over the values of the other keys.";
    let prose = if vary.len() > 1 { others.to_owned() } else { String::new() };
    let figures = MEASURES.iter().map(|measure| figure(&vary[key], key, rows, *measure));
    Section {
        heading: format!("Against {}", vary[key].key),
        prose,
        body: figures.map(Block::Figure).collect(),
    }
}

fn figure(vary: &Vary, key: usize, rows: &[Row], measure: Measure) -> Svg {
    let lines = lines(rows);
    let title = format!("{} against {}", measure.0, vary.key);
    let point = |line: &str, value: &str| mean(rows, key, value, line, measure);
    let Some(numbers) = numbers(&vary.values) else {
        let group = |value: &String| {
            let of = lines.iter().map(|line| point(line, value).map_or(f64::NAN, |(y, _)| y));
            (value.clone(), of.collect())
        };
        return bars(&Bars {
            title,
            axis: Axis { title: measure.0.into(), cover: vec![100.0], ..Axis::default() },
            series: lines.clone(),
            groups: vary.values.iter().map(group).collect(),
            reference: None,
        });
    };
    let series = |line: &String| {
        let points = vary.values.iter().zip(&numbers).filter_map(|(value, x)| {
            point(line, value).map(|(y, error)| Point { x: *x, y, error })
        });
        let mut points: Vec<Point> = points.collect();
        points.sort_by(|a, b| a.x.total_cmp(&b.x));
        Series { label: line.clone(), points }
    };
    curves(&Curves {
        title,
        x: Axis { title: axis_title(vary), log: wide(&numbers), ..Axis::default() },
        y: Axis { title: measure.0.into(), cover: vec![0.0, 100.0], ..Axis::default() },
        series: lines.iter().map(series).collect(),
        reference: None,
    })
}

/// Returns the names of the lines. A name consists of the policy, and of the offered load and the
/// visibility of departures if lines differ in these.
fn lines(rows: &[Row]) -> Vec<String> {
    let mut lines = Vec::new();
    for cell in rows.iter().flat_map(|row| &row.cells) {
        let line = name(cell, rows);
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    lines
}

fn name(cell: &ResultRow, rows: &[Row]) -> String {
    // Only the cells of the first row are compared. If the key `rho` or `closes` is varied, it
    // differs between rows, and is an axis that does not distinguish lines.
    let own = rows.first().map_or(&[][..], |row| &row.cells);
    let loads = own.iter().any(|other| other.rho.total_cmp(&own[0].rho).is_ne());
    let closes = own.iter().any(|other| other.closes != own[0].closes);
    let load = if loads { format!(", ρ {}", cell.rho) } else { String::new() };
    let closes = if closes { format!(", {}", cell.closes) } else { String::new() };
    format!("{}{load}{closes}", cell.policy)
}

/// Returns the mean of `line` over the rows in which the varied key `key` has the value `value`,
/// and the mean of their standard errors, both in percent. Returns `None` without such rows.
fn mean(
    rows: &[Row],
    key: usize,
    value: &str,
    line: &str,
    (_, share, error): Measure,
) -> Option<(f64, Option<f64>)> {
    let cells: Vec<&ResultRow> = rows
        .iter()
        .filter(|row| row.values[key] == value)
        .flat_map(|row| &row.cells)
        .filter(|cell| name(cell, rows) == line)
        .collect();
    let (n, sum) = (cells.len(), cells.iter().map(|cell| share(cell)).sum::<f64>());
    let errors: Option<Vec<f64>> = cells.iter().map(|cell| error(cell)).collect();
    // All combinations have the same visitors, so their errors are correlated: averaging does not
    // reduce them.
    let error = errors.map(|errors| 100.0 * errors.iter().sum::<f64>() / n as f64);
    (n > 0).then(|| (100.0 * sum / n as f64, error))
}

/// Returns the values as numbers, with times in seconds; `None` if any value is neither a number
/// nor a time.
fn numbers(values: &[String]) -> Option<Vec<f64>> {
    let number = |value: &String| {
        let span = || value.parse::<TimeSpan>().ok().map(TimeSpan::as_secs_f64);
        value.parse().ok().filter(|number: &f64| number.is_finite()).or_else(span)
    };
    values.iter().map(number).collect()
}

fn axis_title(vary: &Vary) -> String {
    let spans = vary.values.iter().any(|value| value.parse::<f64>().is_err());
    format!("{}{}", vary.key, if spans { ", s" } else { "" })
}

/// Returns whether the axis is logarithmic, which is so if the values span more than a decade and a
/// half.
fn wide(numbers: &[f64]) -> bool {
    let (low, high) =
        (numbers.iter().copied().reduce(f64::min), numbers.iter().copied().reduce(f64::max));
    low.zip(high).is_some_and(|(low, high)| low > 0.0 && high / low > 30.0)
}
