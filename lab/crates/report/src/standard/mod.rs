//! Composes the usual report of a run: every result row in a table, the main results in figures,
//! and folded details.

mod load;
mod observe;
mod time;

use bywash_scenario::{Closes, ResultRow, RunResult};

use crate::number::{count, short};
use crate::page::{Block, Report, Section};
use crate::table;

/// The maximum number of rows whose figures are shown in the open part of the page. With more rows
/// that have timelines, the timelines are folded. With more rows that have classes, there are no
/// figures of classes. Otherwise these figures would hide the rest of the page.
const MOST_OPEN: usize = 4;
/// The maximum number of seeds that are listed. If there are more, only their number is given.
const MOST_SEEDS: usize = 8;

/// Returns the report of `result`. `command` is the command line that repeats the run. The report
/// shows the scenario and the seeds, followed by `environment`. It has no verdict, because only the
/// caller knows what was promised.
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
        Some(match levels(result).len() {
            0 | 1 => load::orders(result),
            _ => load::against_load(result),
        }),
        observe::observed_and_enforced(result),
        time::response_times(result),
        time::second_by_second(result),
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
        heading: "This run is invalid".into(),
        prose: String::new(),
        body: vec![Block::Warning(format!("The figures must not be used: {why}"))],
    })
}

fn all_cells(result: &RunResult) -> Section {
    Section {
        heading: "Results".into(),
        prose:
            "ρ is the offered load; 1 is capacity. “Closes” says whether the server sees that a \
             client gives up. Outcomes are shares of all intended requests, so they and “not \
             generated” add up to 100 %.\n\nUseful work is service time on requests answered in \
             time. Wasted work is all other service time. Both are shares of the possible service \
             time. Revenue is confirmed orders as a share of the bound, which is min(1, 1/ρ) of \
             the intended orders, ± the standard error over the seeds."
                .into(),
        body: vec![Block::Table(table::cells(result))],
    }
}

/// Returns the offered loads of all result rows, ascending and without duplicates.
fn levels(result: &RunResult) -> Vec<f64> {
    let mut levels: Vec<f64> = result.cells.iter().map(|cell| cell.rho).collect();
    levels.sort_by(f64::total_cmp);
    levels.dedup();
    levels
}

/// Returns the policies of all result rows without duplicates, in the order of the rows.
fn policies(result: &RunResult) -> Vec<&str> {
    distinct(result.cells.iter().map(|cell| cell.policy.as_str()))
}

/// Returns the visibilities of closes of all result rows without duplicates, in the order of the
/// rows.
fn closes(result: &RunResult) -> Vec<Closes> {
    distinct(result.cells.iter().map(|cell| cell.closes))
}

fn distinct<T: PartialEq>(all: impl Iterator<Item = T>) -> Vec<T> {
    let mut seen = Vec::new();
    for one in all {
        if !seen.contains(&one) {
            seen.push(one);
        }
    }
    seen
}

fn name(cell: &ResultRow) -> String {
    format!("{}, ρ = {}, closes {}", cell.policy, short(cell.rho, 2), cell.closes)
}

fn per_class(result: &RunResult) -> Option<Section> {
    let with = || result.cells.iter().filter(|cell| !cell.classes.is_empty());
    // The figures of many rows would make the page large.
    let few = with().count() <= MOST_OPEN;
    let block = |cell: &ResultRow| {
        let figure = few.then(|| time::by_class(cell)).flatten().map(Block::Figure);
        let table = Block::Table(table::classes(cell));
        Block::Details { summary: name(cell), body: figure.into_iter().chain([table]).collect() }
    };
    with().next()?;
    Some(Section {
        heading: "Per class".into(),
        prose: "Shares are of the requests generated in the class. Response times are those of \
                completed requests, as their clients saw them."
            .into(),
        body: with().map(block).collect(),
    })
}

#[cfg(test)]
mod tests {
    use bywash_scenario::{Decisions, EmpiricalCdf, TierResponses};

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
        let responses = 2 * 4 * 3;
        assert_eq!(folded.matches("<details>").count(), with + result.cells.len() + responses);
        result.cells.truncate(8);
        // Each of the eight rows has folded details. At each of the three loads there are also the
        // details of two tiers' response times.
        assert_eq!(html(&result).matches("<details>").count(), 8 + 3 * 2);
    }

    #[test]
    fn response_times_are_a_curve_for_each_policy_that_completed_anything() {
        let mut result = sample::result();
        result.cells.retain(|cell| cell.rho.total_cmp(&1.4).is_eq());
        let title = "Response times at ρ = 1.4, closes hidden: transactions";
        let lines = |html: &str| {
            let figure = html.split("<figcaption>").find(|part| part.starts_with(title));
            figure.map(|figure| figure.matches("class=\"line ").count())
        };
        // Each line occurs twice: in a figure and in the legend.
        assert_eq!(lines(&html(&result)), Some(2 * 3));
        result.cells[4].response = TierResponses::default();
        assert_eq!(lines(&html(&result)), Some(2 * 2));
        for cell in &mut result.cells {
            cell.response = TierResponses::default();
        }
        assert!(!html(&result).contains("Response times at ρ"));
    }

    #[test]
    fn the_response_times_of_classes_are_drawn_for_a_few_rows() {
        let figures = |result: &RunResult| {
            html(result).matches("<figcaption>Response times by class: ").count()
        };
        let mut result = sample::result();
        result.cells.truncate(MOST_OPEN + 1);
        assert_eq!(figures(&result), 0);
        result.cells.truncate(MOST_OPEN);
        assert_eq!(figures(&result), MOST_OPEN);
        // A single class has no figure, and neither has a class that completed nothing.
        result.cells[0].classes.truncate(1);
        for class in &mut result.cells[1].classes {
            class.response = EmpiricalCdf::default();
        }
        assert_eq!(figures(&result), MOST_OPEN - 2);
    }

    #[test]
    fn an_observed_policy_is_drawn_next_to_those_of_the_same_load_and_visibility() {
        let mut result = sample::result();
        assert!(!html(&result).contains("Observed and enforced"));
        let is_drawn = |cell: &&mut ResultRow| {
            cell.rho.total_cmp(&1.4).is_eq() && cell.closes == Closes::Hidden
        };
        let mut drawn: Vec<&mut ResultRow> = result.cells.iter_mut().filter(is_drawn).collect();
        drawn[0].dropped = 0;
        drawn[0].observed = Some(Decisions { run: 3, shed: 7_654_321, stop: 0, wait: 4 });
        drawn[1].dropped = 1_234_567;
        let html = html(&result);
        let title = "<figcaption>Observed and enforced, ρ = 1.4, closes hidden</figcaption>";
        assert_eq!(html.matches("<figcaption>Observed and enforced").count(), 1);
        assert!(html.contains(title));
        assert!(html.contains(">7,654,321</text>") && html.contains(">1,234,567</text>"));
    }

    #[test]
    fn useful_work_against_load_has_error_bars() {
        let mut result = sample::result();
        let whiskers = |result: &RunResult| html(result).matches("<line class=\"thin").count();
        let with = whiskers(&result);
        for cell in &mut result.cells {
            cell.useful_error = None;
        }
        assert_eq!(with - whiskers(&result), result.cells.len());
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
