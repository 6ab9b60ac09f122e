//! Creates a demo's report. It is the report of any run, with the verdict and the counts of
//! successes in front.

use bywash_report::figure::{Bars, Ceiling, Phase, Timeline, bars, timeline};
use bywash_report::page::Verdict as Headline;
use bywash_report::{Block, Report, Section, table};
use bywash_scenario::RunResult;
use bywash_terminal::Table;
use bywash_units::Time;

use super::phases::{Phase as Counts, Phases};
use super::verdict::Verdict;
use super::words::Words;
use crate::{command, environment};

/// The result of a demo, with the texts that only one demo has.
pub(super) struct Story {
    pub(super) words: Words,
    pub(super) title: &'static str,
    /// A summary of the successes in two lines.
    pub(super) headline: String,
    /// The course of the run, for a reader of the report.
    pub(super) setting: String,
    /// The meaning of the counted successes, for a reader of the report.
    pub(super) counted: &'static str,
    pub(super) phases: Phases,
    /// Tables that follow the counts of successes.
    pub(super) tables: Vec<Table>,
    pub(super) verdict: Verdict,
    pub(super) result: RunResult,
    /// The times at which the arrivals of the overload begin and end.
    pub(super) overload: (Time, Time),
}

pub(super) fn report(story: &Story) -> Report {
    let Story { verdict, result, .. } = story;
    // A run that is invalid has neither kept nor broken a promise.
    let headline = || Headline { kept: verdict.is_kept(), line: story.headline.replace('\n', " ") };
    Report {
        title: story.title.into(),
        verdict: verdict.invalid.is_none().then(headline),
        environment: environment(),
        command: command(),
        sections: vec![
            setting(story),
            counts(story),
            seconds(story),
            promises(verdict),
            requests(result),
        ],
    }
}

fn setting(story: &Story) -> Section {
    let caution =
        |why: &String| Block::Warning(format!("Nothing can be concluded from this run: {why}."));
    Section {
        heading: "What was done".into(),
        prose: story.setting.clone(),
        body: story.verdict.invalid.iter().map(caution).collect(),
    }
}

fn counts(story: &Story) -> Section {
    let Words { unit, clients, .. } = story.words;
    let axis = |title: &str| bywash_report::figure::Axis {
        title: title.into(),
        log: false,
        cover: vec![0.0],
    };
    let group = |phase: &Counts| {
        (phase.name.to_owned(), vec![phase.possible, phase.plain as f64, phase.bywash as f64])
    };
    let figure = bars(&Bars {
        title: format!("Confirmed {unit} by the time at which their {clients} arrived"),
        axis: axis(unit),
        series: ["capacity for", "plain proxy", "bywash"].map(String::from).into(),
        groups: story.phases.all.iter().map(group).collect(),
        reference: None,
    });
    let mut body = vec![Block::Figure(figure), Block::Table(story.phases.table(&story.words))];
    body.extend(story.tables.iter().cloned().map(Block::Table));
    let (first, rest) = unit.split_at(1);
    Section { heading: first.to_uppercase() + rest, prose: story.counted.into(), body }
}

fn promises(verdict: &Verdict) -> Section {
    Section {
        heading: "Promises".into(),
        prose: "What bywash promises for this load, and what the run showed.".into(),
        body: vec![Block::Table(verdict.table())],
    }
}

fn seconds(story: &Story) -> Section {
    let (from, to) = story.overload;
    let label = story.words.phase.to_owned();
    let phases = [Phase { label, from_s: from.as_secs_f64(), to_s: to.as_secs_f64() }];
    let cells = &story.result.cells;
    let ceilings = cells.iter().map(|cell| Ceiling::of(&cell.timeline, 1));
    let ceiling = ceilings.fold(Ceiling::default(), Ceiling::max);
    let strip = |cell: &bywash_scenario::ResultRow| {
        Block::Figure(timeline(&Timeline {
            title: &cell.policy,
            seconds: &cell.timeline,
            runs: 1,
            phases: &phases,
            ceiling,
        }))
    };
    Section {
        heading: "Second by second".into(),
        prose: "The outcomes of the requests that ended in each second, as their clients saw them."
            .into(),
        body: cells.iter().map(strip).collect(),
    }
}

fn requests(result: &RunResult) -> Section {
    let details = |cell: &bywash_scenario::ResultRow| Block::Details {
        summary: format!("{} by class", cell.policy),
        body: vec![Block::Table(table::classes(cell))],
    };
    let mut body = vec![Block::Table(table::cells(result))];
    body.extend(result.cells.iter().map(details));
    Section {
        heading: "Requests".into(),
        prose: "Useful work is service time on requests answered in time.".into(),
        body,
    }
}
