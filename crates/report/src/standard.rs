//! The usual report of a run: every cell in a table, the shape of the answer in figures, and the
//! details for those who ask.

use bywash_scenario::{Cell, RunResult};

use crate::figure::{
    Axis, Bars, Ceiling, Curves, Point, Reference, Series, Timeline, bars, curves, timeline,
};
use crate::number::{count, short};
use crate::page::{Block, Report, Section};
use crate::table;

/// More timelines than this hide the rest of the page, so they fold away.
const MOST_OPEN: usize = 4;
/// More seeds than this are told by their number.
const MOST_SEEDS: usize = 8;

/// The report of `result`, which `command` repeats. What it says of the environment comes after
/// the scenario and its seeds. It has no verdict: what was promised, the caller knows.
pub fn result_report(
    result: &RunResult,
    command: &str,
    environment: Vec<(String, String)>,
) -> Report {
    let mut origin = vec![
        ("scenario".to_owned(), result.scenario.clone()),
        ("seeds".to_owned(), seeds(&result.seeds)),
    ];
    origin.extend(environment);
    let sections = [
        invalid(result),
        Some(all_cells(result)),
        Some(if levels(result).len() > 1 { against_load(result) } else { orders(result) }),
        second_by_second(result),
        per_class(result),
    ];
    Report {
        title: result.scenario.clone(),
        verdict: None,
        environment: origin,
        command: command.to_owned(),
        sections: sections.into_iter().flatten().collect(),
    }
}

fn seeds(seeds: &[u64]) -> String {
    let listed = |some: &[u64]| some.iter().map(u64::to_string).collect::<Vec<_>>().join(", ");
    match seeds {
        [first, .., last] if seeds.len() > MOST_SEEDS => {
            format!("{first} … {last} ({} in all)", count(seeds.len() as u64))
        }
        _ => listed(seeds),
    }
}

fn invalid(result: &RunResult) -> Option<Section> {
    let why = result.invalid.as_ref()?;
    Some(Section {
        heading: "This run does not count".into(),
        prose: String::new(),
        body: vec![Block::Warning(format!("The figures must not be used: {why}"))],
    })
}

fn all_cells(result: &RunResult) -> Section {
    Section {
        heading: "Results".into(),
        prose: "ρ is the offered load; 1 is capacity. “Closes” says whether a client that gives \
                up is noticed. Outcomes are shares of all requests that were meant to be made, \
                so they and “not generated” add up to 100 %.\n\n\
                Useful work is service time on requests answered in time, wasted work is service \
                time on anything else; both as shares of what was possible. Revenue is confirmed \
                orders as a share of the bound, min(1, 1/ρ) of the orders meant, ± the standard \
                error over the seeds."
            .into(),
        body: vec![Block::Table(table::cells(result))],
    }
}

/// The levels of load, rising.
fn levels(result: &RunResult) -> Vec<f64> {
    let mut levels: Vec<f64> = result.cells.iter().map(|cell| cell.rho).collect();
    levels.sort_by(f64::total_cmp);
    levels.dedup();
    levels
}

/// What `part` says of the cells, each once, in their order.
fn distinct<'a>(result: &'a RunResult, part: impl Fn(&'a Cell) -> &'a str) -> Vec<&'a str> {
    let mut seen = Vec::new();
    for name in result.cells.iter().map(part) {
        if !seen.contains(&name) {
            seen.push(name);
        }
    }
    seen
}

fn against_load(result: &RunResult) -> Section {
    let revenue = |closes| {
        let error = |cell: &Cell| cell.revenue_error;
        let y = ("Revenue", "confirmed orders, % of the bound");
        load_curves(result, closes, y, |cell| cell.revenue_share, error)
    };
    let useful = |closes| {
        let y = ("Useful work", "service time answered in time, % of the possible");
        load_curves(result, closes, y, |cell| cell.useful_work, |_| None)
    };
    let closes = distinct(result, |cell| cell.closes);
    let figures = closes.iter().map(|closes| revenue(*closes));
    let figures = figures.chain(closes.iter().map(|closes| useful(*closes)));
    Section {
        heading: "Against offered load".into(),
        prose: "The further right a curve stays high, the more overload its policy bears.".into(),
        body: figures.map(Block::Figure).collect(),
    }
}

fn load_curves(
    result: &RunResult,
    closes: &str,
    (title, measure): (&str, &str),
    value: fn(&Cell) -> f64,
    error: fn(&Cell) -> Option<f64>,
) -> crate::figure::Svg {
    let series = |policy: &str| {
        let mine = |cell: &&Cell| cell.policy == policy && cell.closes == closes;
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
        series: distinct(result, |cell| &cell.policy).into_iter().map(series).collect(),
        reference: Some(Reference { value: 1.0, label: "capacity".into() }),
    })
}

fn orders(result: &RunResult) -> Section {
    let closes = distinct(result, |cell| cell.closes);
    let group = |policy: &str| {
        let of = |closes: &&str| {
            let mine = |cell: &&Cell| cell.policy == policy && cell.closes == *closes;
            result.cells.iter().find(mine).map_or(f64::NAN, |cell| cell.orders as f64)
        };
        (policy.to_owned(), closes.iter().map(of).collect())
    };
    let figure = bars(&Bars {
        title: "Orders confirmed".into(),
        axis: Axis { title: "orders confirmed, all seeds".into(), ..Axis::default() },
        series: closes.iter().map(|closes| format!("closes {closes}")).collect(),
        groups: distinct(result, |cell| &cell.policy).into_iter().map(group).collect(),
        reference: bound(result),
    });
    Section { heading: "Orders".into(), prose: String::new(), body: vec![Block::Figure(figure)] }
}

/// What was possible, if every cell faced the same visitors.
fn bound(result: &RunResult) -> Option<Reference> {
    let first = result.cells.first()?.orders_possible;
    let same = |cell: &Cell| (cell.orders_possible - first).abs() <= 0.005 * first;
    result
        .cells
        .iter()
        .all(same)
        .then(|| Reference { value: first, label: format!("possible: {}", short(first, 0)) })
}

fn name(cell: &Cell) -> String {
    format!("{}, ρ = {}, closes {}", cell.policy, short(cell.rho, 2), cell.closes)
}

fn second_by_second(result: &RunResult) -> Option<Section> {
    let with = || result.cells.iter().filter(|cell| !cell.timeline.is_empty());
    if with().count() == 0 {
        return None;
    }
    let few = with().count() <= MOST_OPEN;
    let block = |cell: &Cell| {
        let title = name(cell);
        // Cells of one load stand side by side, so they share their axes.
        let peers = with().filter(|peer| peer.rho.total_cmp(&cell.rho).is_eq());
        let ceilings = peers.map(|peer| Ceiling::of(&peer.timeline));
        let ceiling = ceilings.fold(Ceiling::default(), Ceiling::max);
        let figure = Block::Figure(timeline(&Timeline {
            title: &title,
            seconds: &cell.timeline,
            phases: &[],
            ceiling,
        }));
        if few { figure } else { Block::Details { summary: title, body: vec![figure] } }
    };
    Some(Section {
        heading: "Second by second".into(),
        prose: "The first seed of each cell: how many requests ended in each second, and how. \
                Figures of one load have the same axes."
            .into(),
        body: with().map(block).collect(),
    })
}

fn per_class(result: &RunResult) -> Option<Section> {
    let with = || result.cells.iter().filter(|cell| !cell.classes.is_empty());
    let block = |cell: &Cell| Block::Details {
        summary: name(cell),
        body: vec![Block::Table(table::classes(cell))],
    };
    with().next()?;
    Some(Section {
        heading: "Per class".into(),
        prose: "Shares are of the requests generated in the class; response times are those of \
                completed requests, as their clients saw them."
            .into(),
        body: with().map(block).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    fn html(result: &RunResult) -> String {
        result_report(result, "bywash lab run flash.toml", vec![("cpu".into(), "2".into())]).html()
    }

    #[test]
    fn several_levels_are_curves_for_each_visibility_of_closes() {
        let html = html(&sample::result());
        for title in
            ["Revenue, closes visible", "Revenue, closes hidden", "Useful work, closes hidden"]
        {
            assert!(html.contains(&format!("<figcaption>{title}</figcaption>")), "{title}");
        }
        assert!(html.contains("<dt>seeds</dt><dd>1 … 30 (30 in all)</dd>"));
        assert!(html.contains("session push-out &lt;b&gt;") && !html.contains("<b>"));
    }

    #[test]
    fn one_level_is_bars_with_the_bound() {
        let mut result = sample::result();
        result.cells.retain(|cell| cell.rho.total_cmp(&1.4).is_eq());
        let html = html(&result);
        assert!(html.contains("<figcaption>Orders confirmed</figcaption>"));
        assert!(html.contains(">possible: 400</text>"));
        assert!(!html.contains("Against offered load"));
    }

    #[test]
    fn every_cell_with_a_timeline_has_one_and_many_of_them_fold() {
        let mut result = sample::result();
        let with = result.cells.iter().filter(|cell| !cell.timeline.is_empty()).count();
        let folded = html(&result);
        assert_eq!(folded.matches("orders/min").count(), with);
        assert_eq!(folded.matches("<details>").count(), with + result.cells.len());
        result.cells.truncate(8);
        assert_eq!(html(&result).matches("<details>").count(), 8);
    }

    #[test]
    fn a_run_that_does_not_count_says_so_first() {
        let mut result = sample::result();
        result.invalid = Some("p99 lag 14 ms".into());
        let html = html(&result);
        let place = |part: &str| html.find(part).unwrap();
        assert!(place("must not be used: p99 lag 14 ms") < place("<table>"));
    }

    #[test]
    fn a_result_without_cells_or_with_odd_numbers_is_still_a_page() {
        let mut result = sample::result();
        for cell in &mut result.cells {
            (cell.useful_work, cell.revenue_share) = (f64::NAN, f64::INFINITY);
            cell.revenue_error = Some(f64::NAN);
        }
        assert!(!html(&result).contains("NaN"));
        result.cells.clear();
        assert!(html(&result).contains("</html>"));
    }
}
