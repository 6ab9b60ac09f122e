//! The demo's report: the same as any run's, with the verdict and the books in front.

use bywash_report::figure::{Bars, Ceiling, Phase, Timeline, bars, timeline};
use bywash_report::page::Verdict as Headline;
use bywash_report::{Block, Report, Section, table};
use bywash_scenario::{RunResult, Scenario};

use super::books::{Books, crowd};
use super::verdict::Verdict;
use crate::lab::{command, environment};

pub(super) fn report(
    scenario: &Scenario,
    result: &RunResult,
    books: &Books,
    verdict: &Verdict,
) -> Report {
    let phase = books.crowd();
    let line = format!(
        "From the crowd the shop behind bywash took {} orders of {:.0} that were possible; the \
         same shop behind a plain proxy took {}.",
        phase.bywash, phase.possible, phase.plain
    );
    Report {
        title: "A flash crowd, with and without bywash".into(),
        verdict: Some(Headline { kept: verdict.kept(), line }),
        environment: environment(),
        command: command(),
        sections: vec![orders(books, verdict), seconds(scenario, result), requests(result)],
    }
}

fn orders(books: &Books, verdict: &Verdict) -> Section {
    let axis = |title: &str| bywash_report::figure::Axis {
        title: title.into(),
        log: false,
        cover: vec![0.0],
    };
    let group = |phase: &super::books::Phase| {
        (phase.name.to_owned(), vec![phase.possible, phase.plain as f64, phase.bywash as f64])
    };
    let figure = bars(&Bars {
        title: "Confirmed orders by when their visitor came".into(),
        axis: axis("orders"),
        series: ["possible", "plain proxy", "bywash"].map(String::from).into(),
        groups: books.phases.iter().map(group).collect(),
        reference: None,
    });
    Section {
        heading: "Orders".into(),
        prose: "Counted from the shops' own databases: an order is a committed row. «Possible» \
                is what the visitors meant to buy, times the share of the load that the shop \
                could carry when they came."
            .into(),
        body: vec![
            Block::Figure(figure),
            Block::Table(books.table()),
            Block::Text(verdict.to_string()),
        ],
    }
}

fn seconds(scenario: &Scenario, result: &RunResult) -> Section {
    let (from, to) = crowd(scenario);
    let phases =
        [Phase { label: "flash crowd".into(), from_s: from.as_secs_f64(), to_s: to.as_secs_f64() }];
    let ceilings = result.cells.iter().map(|cell| Ceiling::of(&cell.timeline));
    let ceiling = ceilings.fold(Ceiling::default(), Ceiling::max);
    let strip = |cell: &bywash_scenario::Cell| {
        Block::Figure(timeline(&Timeline {
            title: &cell.policy,
            seconds: &cell.timeline,
            phases: &phases,
            ceiling,
        }))
    };
    Section {
        heading: "Second by second".into(),
        prose: "What became of the requests that ended in each second, as their clients saw it."
            .into(),
        body: result.cells.iter().map(strip).collect(),
    }
}

fn requests(result: &RunResult) -> Section {
    let details = |cell: &bywash_scenario::Cell| Block::Details {
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
