//! `bywash lab paper`: simulates all runs of a source paper, and prints the paper's figures next to
//! the measured ones.
//!
//! Each paper has a data file in the folder `papers`, with the runs and the claims of the paper.
//! Each claim is a list of figures, each with the printed value and a tolerance. Where the measured
//! figure deviates, the file gives a reason and the range that the reason predicts. A reason that
//! the run does not confirm counts as no reason. No parameter is chosen for a single figure: a free
//! parameter has one value for all figures of the paper.

mod claims;
mod metric;
mod table;

use std::collections::BTreeMap;
use std::path::Path;

use bywash_command::Failure;
use bywash_command::streams::{print, print_json};
use bywash_scenario::{RunResult, Scenario, Setting};
use bywash_sim::SimError;

use self::claims::{Outcome, Paper};
use self::metric::CompletedRun;
use super::{environment, prepare_report, progress_bar, write_report};
use crate::args;

/// The data files of the embedded papers, by number of the paper.
const PAPERS: [(u32, &str); 5] = [
    (1, include_str!("../../../../../papers/1-lifo-pri/claims.toml")),
    (2, include_str!("../../../../../papers/2-sert/claims.toml")),
    (3, include_str!("../../../../../papers/3-parallel-qos/claims.toml")),
    (4, include_str!("../../../../../papers/4-connection-sentry/claims.toml")),
    (5, include_str!("../../../../../papers/5-selfman/claims.toml")),
];

/// The embedded scenarios that papers use, by file name without the extension.
const SCENARIOS: [(&str, &str); 10] = [
    ("paper-1", include_str!("../../../../../papers/1-lifo-pri/scenarios/paper-1.toml")),
    (
        "paper-1-order",
        include_str!("../../../../../papers/1-lifo-pri/scenarios/paper-1-order.toml"),
    ),
    (
        "paper-1-table",
        include_str!("../../../../../papers/1-lifo-pri/scenarios/paper-1-table.toml"),
    ),
    ("paper-2-fig-2", include_str!("../../../../../papers/2-sert/scenarios/paper-2-fig-2.toml")),
    ("paper-2-index", include_str!("../../../../../papers/2-sert/scenarios/paper-2-index.toml")),
    (
        "paper-2-index-shift",
        include_str!("../../../../../papers/2-sert/scenarios/paper-2-index-shift.toml"),
    ),
    (
        "paper-2-ranking",
        include_str!("../../../../../papers/2-sert/scenarios/paper-2-ranking.toml"),
    ),
    ("paper-3", include_str!("../../../../../papers/3-parallel-qos/scenarios/paper-3.toml")),
    ("paper-4", include_str!("../../../../../papers/4-connection-sentry/scenarios/paper-4.toml")),
    ("paper-5", include_str!("../../../../../papers/5-selfman/scenarios/paper-5.toml")),
];

pub(super) fn paper(args: &args::Paper) -> Result<(), Failure> {
    let numbers: Vec<String> = PAPERS.iter().map(|(number, _)| number.to_string()).collect();
    let text = PAPERS.iter().find(|(number, _)| *number == args.number).map(|(_, text)| *text);
    let text = text.ok_or_else(|| {
        let there = numbers.join(", ");
        Failure::usage(format!("there is no paper {}; the papers are {there}", args.number))
    })?;
    args.report.as_deref().map_or(Ok(()), prepare_report)?;
    let paper = Paper::parse(text).map_err(Failure::running)?;
    let played = play(&paper)?;
    let outcomes = paper.outcomes(&played).map_err(Failure::running)?;
    if let Some(path) = &args.report {
        write_report(path, &table::report(&paper, &outcomes, &played, environment()))?;
    }
    if args.json {
        print_json(&table::json(&paper, &outcomes))?;
    } else {
        print(&table::text(&paper, &outcomes))?;
    }
    verdict(&outcomes)
}

/// Simulates every run of a paper on all cores, and returns the results by name of the run.
fn play(paper: &Paper) -> Result<BTreeMap<String, CompletedRun>, Failure> {
    let scenarios = paper.runs.iter().map(scenario).collect::<Result<Vec<_>, _>>()?;
    let (bar, progress) = progress_bar();
    let (results, _) = bywash_sim::run_all(&scenarios, &progress).map_err(Failure::running)?;
    bar.finish_and_clear();
    let played = |((run, scenario), result): ((&claims::Run, Scenario), RunResult)| {
        let correlate = |every| bywash_sim::correlations(&scenario, every, &|_, _| ());
        let correlations = run.correlate.map_or_else(|| Ok(Vec::new()), correlate)?;
        let planned = run.planned;
        Ok((run.name.clone(), CompletedRun { scenario, result, planned, correlations }))
    };
    let played = paper.runs.iter().zip(scenarios).zip(results).map(played);
    played.collect::<Result<_, SimError>>().map_err(Failure::running)
}

fn scenario(run: &claims::Run) -> Result<Scenario, Failure> {
    let failure = |why: &str| Failure::running(format!("run `{}`: {why}", run.name));
    let text = SCENARIOS.iter().find(|(name, _)| *name == run.scenario);
    let (_, text) = text.ok_or_else(|| failure("its scenario is not built into the program"))?;
    let settings = run.set.iter().map(|text| text.parse::<Setting>());
    let settings = settings.collect::<Result<Vec<_>, _>>().map_err(|why| failure(&why))?;
    // No embedded scenario reads another file.
    Scenario::parse_with(text, Path::new("."), &settings).map_err(|why| failure(&why.to_string()))
}

fn verdict(outcomes: &[Outcome<'_>]) -> Result<(), Failure> {
    let broken = outcomes.iter().filter(|outcome| outcome.verdict == claims::Verdict::Broken);
    match broken.count() {
        0 => Ok(()),
        some => Err(Failure::promise(format!(
            "{some} of {} figures are off without a reason that the run confirms",
            outcomes.len()
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_paper_is_well_formed_and_its_runs_can_be_read() {
        for (number, text) in PAPERS {
            let paper = Paper::parse(text).unwrap_or_else(|why| panic!("paper {number}: {why}"));
            for run in &paper.runs {
                scenario(run).unwrap();
            }
        }
    }
}
