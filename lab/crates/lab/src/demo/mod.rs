//! `bywash demo`: shows a site that keeps serving during an overload, next to one that does not.
//!
//! - [`flash_crowd`]: a shop that keeps selling during a flash crowd. It is the default.
//! - [`scrape`]: a wiki that stays open to readers while scrapers come.
//!
//! Each demo has two identical sites, one behind a plain proxy and one behind bywash. Both get the
//! same clients, drawn from the same random numbers. The clients of both sites arrive at the same
//! moments, want the same pages and cause the same work. The exit code says whether the promises
//! were kept.

mod flash_crowd;
mod folder;
mod gauge;
mod interactive;
mod page;
mod phases;
mod scrape;
mod screen;
mod shop_side;
mod side;
mod simulation;
mod verdict;
mod words;

use std::path::Path;

use bywash_command::Failure;
use bywash_command::streams::{print, print_json, to_json};
use bywash_scenario::{ResultRow, RunResult, Scenario};
use bywash_terminal::{Align, Table};
use serde_json::Value;

use crate::args::Demo;
use crate::{prepare_figures, prepare_report, write_figures, write_report};
use page::Story;
use words::Words;

/// Runs the demo that `args` select.
///
/// # Errors
/// Fails if the demo cannot be run, or if a promise was not kept (exit code 99).
pub fn demo(args: &Demo) -> Result<(), Failure> {
    prepare_report(&args.report)?;
    args.figures.as_deref().map_or(Ok(()), prepare_figures)?;
    if args.scrape { scrape::run(args) } else { flash_crowd::run(args) }
}

fn scenario(text: &str) -> Result<Scenario, Failure> {
    Scenario::parse(text, Path::new(".")).map_err(Failure::running)
}

/// Prints the result of a demo, and writes its report and figures.
fn deliver(args: &Demo, story: &Story) -> Result<(), Failure> {
    if args.json {
        print_json(&json(story)?)?;
    } else {
        let mut tables = vec![story.phases.table(&story.words)];
        tables.extend(story.tables.clone());
        tables.push(requests(&story.result, &story.words));
        let tables: Vec<String> = tables.iter().map(Table::to_string).collect();
        print(&format!("\n{}\n\n{}\n{}\n", story.headline, tables.join("\n"), story.verdict))?;
    }
    let report = page::report(story);
    write_report(&args.report, &report)?;
    args.figures.as_deref().map_or(Ok(()), |folder| write_figures(folder, &report))
}

/// Returns a table of the outcomes of the requests on both sides. The report has more details.
fn requests(result: &RunResult, words: &Words) -> Table {
    let mut table = Table::new(&[
        (&format!("{} behind", words.site), Align::Left),
        ("requests", Align::Right),
        ("answered in time", Align::Right),
        ("client gave up", Align::Right),
        ("refused at once", Align::Right),
        ("wasted work", Align::Right),
    ]);
    for cell in &result.cells {
        table.push(shares(cell));
    }
    table
}

fn shares(cell: &ResultRow) -> Vec<String> {
    let of_all = |part: u64| percent(part as f64 / cell.generated.max(1) as f64);
    vec![
        cell.policy.clone(),
        cell.generated.to_string(),
        of_all(cell.completed),
        of_all(cell.timed_out),
        of_all(cell.dropped),
        cell.wasted_work
            .map_or("–".into(), |wasted| percent(wasted / (wasted + cell.useful_work))),
    ]
}

fn percent(share: f64) -> String {
    format!("{:.0} %", 100.0 * share)
}

/// Returns the result as JSON: the format of every run result, with the values that only the demo
/// has added.
fn json(story: &Story) -> Result<Value, Failure> {
    let mut json = to_json(&story.result)?;
    json[story.words.unit] = story.phases.to_json();
    json["promises"] = story.verdict.to_json();
    Ok(json)
}
