//! Creates the demo's report. It is the report of any run, with the verdict and the orders in
//! front.

use bywash_report::figure::{Bars, Ceiling, Phase, Timeline, bars, timeline};
use bywash_report::page::Verdict as Headline;
use bywash_report::{Block, Report, Section, table};
use bywash_scenario::{RunResult, Scenario};

use super::order_audit::{OrderAudit, crowd};
use super::side::rho;
use super::verdict::Verdict;
use crate::{command, environment};

pub(super) fn report(
    scenario: &Scenario,
    result: &RunResult,
    audit: &OrderAudit,
    verdict: &Verdict,
) -> Report {
    // A run that is invalid has neither kept nor broken a promise.
    let headline =
        || Headline { kept: verdict.is_kept(), line: audit.headline().replace('\n', " ") };
    Report {
        title: "A flash crowd, with and without bywash".into(),
        verdict: verdict.invalid.is_none().then(headline),
        environment: environment(),
        command: command(),
        sections: vec![
            setting(scenario, verdict),
            orders(audit),
            seconds(scenario, result),
            promises(verdict),
            requests(result),
        ],
    }
}

fn setting(scenario: &Scenario, verdict: &Verdict) -> Section {
    let (from, to) = crowd(scenario);
    let caution =
        |why: &String| Block::Warning(format!("Nothing can be concluded from this run: {why}."));
    Section {
        heading: "What was done".into(),
        prose: format!(
            "Two identical shops with {} workers each and a database of their own, one behind a \
             plain proxy and one behind bywash. The same visitors came to both at the same \
             moments. They look around, some of them buy, and a visitor who waits too long for a \
             page leaves. From second {:.0} to second {:.0} the load was {} times what a shop can \
             serve.",
            scenario.workers,
            from.as_secs_f64(),
            to.as_secs_f64(),
            rho(scenario),
        ),
        body: verdict.invalid.iter().map(caution).collect(),
    }
}

fn orders(audit: &OrderAudit) -> Section {
    let axis = |title: &str| bywash_report::figure::Axis {
        title: title.into(),
        log: false,
        cover: vec![0.0],
    };
    let group = |phase: &super::order_audit::Phase| {
        (phase.name.to_owned(), vec![phase.possible, phase.plain as f64, phase.bywash as f64])
    };
    let figure = bars(&Bars {
        title: "Confirmed orders by the time at which their visitor arrived".into(),
        axis: axis("orders"),
        series: ["capacity for", "plain proxy", "bywash"].map(String::from).into(),
        groups: audit.phases.iter().map(group).collect(),
        reference: None,
    });
    Section {
        heading: "Orders".into(),
        prose:
            "Counted in the shops' own databases: an order is a committed row. “Capacity for” is \
             what the visitors meant to buy, times the share of the load that a shop could carry \
             when they arrived. A shop that serves buyers first, or goes on selling after the \
             crowd has left, can do a little better. Visitors who came just before the crowd were \
             still shopping when it arrived."
                .into(),
        body: vec![Block::Figure(figure), Block::Table(audit.table())],
    }
}

fn promises(verdict: &Verdict) -> Section {
    Section {
        heading: "Promises".into(),
        prose: "What bywash promises for this crowd, and what the run showed.".into(),
        body: vec![Block::Table(verdict.table())],
    }
}

fn seconds(scenario: &Scenario, result: &RunResult) -> Section {
    let (from, to) = crowd(scenario);
    let phases =
        [Phase { label: "flash crowd".into(), from_s: from.as_secs_f64(), to_s: to.as_secs_f64() }];
    let ceilings = result.cells.iter().map(|cell| Ceiling::of(&cell.timeline, 1));
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
        body: result.cells.iter().map(strip).collect(),
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
