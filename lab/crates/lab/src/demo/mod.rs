//! `bywash demo`: shows a shop that keeps selling during a flash crowd, next to one that does not.
//!
//! Part one simulates the policies of paper 1 in virtual time, within a second. Part two has two
//! identical shops with real databases, one behind a plain proxy and one behind bywash. Both get
//! the same visitors, drawn from the same random numbers. The visitors of both shops arrive at the
//! same moments, want the same pages and cause the same work. At the end, orders are counted in the
//! shops' own databases. The exit code says whether the promises were kept.
//!
//! A user who watches on a terminal may stay for part three. The shop behind bywash stays open, a
//! crawler comes, and the console ([`interactive`]) shows the crawler's cost and the effect of a
//! rule.

mod folder;
mod gauge;
mod interactive;
mod order_audit;
mod page;
mod screen;
mod side;
mod simulation;
mod verdict;

use std::io::IsTerminal;
use std::path::Path;

use bywash_command::Failure;
use bywash_command::browser;
use bywash_command::streams::to_json;
use bywash_command::streams::{is_terminal, print, print_json, say};
use bywash_scenario::{ResultRow, RunResult, Scenario};
use bywash_terminal::{Align, Table};
use serde_json::Value;

use crate::args::{Demo, Stay};
use crate::{prepare_figures, prepare_report, write_figures, write_report};
use folder::Folder;
use order_audit::{OrderAudit, crowd};
use screen::Screen;
use side::{Outcome, ProxyKind, Side, rho};
use verdict::Verdict;

const PAPER_1: &str = include_str!("../../../../../papers/1-lifo-pri/scenarios/paper-1.toml");
const FLASH_CROWD: &str = include_str!("../../../../scenarios/flash-crowd.toml");

/// Runs all parts of the demo.
///
/// # Errors
/// Fails if the demo cannot be run, or if a promise was not kept (exit code 99).
pub fn demo(args: &Demo) -> Result<(), Failure> {
    prepare_report(&args.report)?;
    args.figures.as_deref().map_or(Ok(()), prepare_figures)?;
    say("More visitors than a shop can serve, with and without bywash. It takes about a minute.");
    say(if should_stay_open(args) {
        "Three parts: a simulation, a live run, and after about 75 s a crawler that you throttle.\n"
    } else {
        "Two parts: a simulation and a live run. On a terminal, or with --stay yes, the shop then\n\
         stays open, and a crawler comes that you throttle.\n"
    });
    simulation::simulate(scenario(PAPER_1)?)?;
    let scenario = scenario(FLASH_CROWD)?;
    // Parse the crawler's scenario before part two starts. Otherwise an error in it would appear
    // only after the first minute.
    let crawler = self::scenario(interactive::CRAWLER)?;
    let folder = Folder::new().map_err(Failure::running)?;
    folder.remove_on_signals().map_err(Failure::running)?;
    let (plain, bywash, side) = play(&scenario, args, &folder)?;
    let audit = OrderAudit::collect(&scenario, args.seed, &plain, &bywash)?;
    let verdict = Verdict::of(&scenario, &audit, &plain, &bywash);
    let result = side::join(&scenario, args.seed, &plain, &bywash);
    if args.json {
        print_json(&json(&result, &audit, &verdict)?)?;
    } else {
        let (headline, orders) = (audit.headline(), audit.table());
        print(&format!("\n{headline}\n\n{orders}\n{}\n{verdict}\n", requests(&result)))?;
    }
    let report = page::report(&scenario, &result, &audit, &verdict);
    write_report(&args.report, &report)?;
    args.figures.as_deref().map_or(Ok(()), |folder| write_figures(folder, &report))?;
    let kept = verdict.into_result();
    if should_stay_open(args) {
        folder.ends_with(kept.as_ref().map_or_else(Failure::number, |()| 0));
        interactive::run(&scenario, &crawler, &side, &side.console(&folder)?)?;
        interactive::print_decisions(&folder.file(folder::STATE));
    }
    kept
}

/// Returns whether the shop stays open for part three. Unless `args` decide, it stays open if a
/// user at a terminal can end it.
fn should_stay_open(args: &Demo) -> bool {
    match args.stay {
        Stay::Auto => !args.json && is_terminal() && std::io::stdin().is_terminal(),
        Stay::Yes => true,
        Stay::No => false,
    }
}

fn scenario(text: &str) -> Result<Scenario, Failure> {
    Scenario::parse(text, Path::new(".")).map_err(Failure::running)
}

/// Runs part two against both shops. Returns the outcome of each side, and the side behind bywash,
/// which stays open.
fn play(
    scenario: &Scenario,
    args: &Demo,
    folder: &Folder,
) -> Result<(Outcome, Outcome, Side), Failure> {
    let plain = Side::open(ProxyKind::Plain, scenario, folder)?;
    let bywash = Side::open(ProxyKind::Bywash, scenario, folder)?;
    print_introduction(scenario, &plain, &bywash, folder)?;
    if should_stay_open(args) {
        browser::open(&bywash.console(folder)?);
    }
    let screen = Screen::new(scenario);
    let seed = args.seed;
    let (first, second) = std::thread::scope(|scope| {
        let left = scope.spawn(|| plain.play(scenario, seed, &screen));
        let right = bywash.play(scenario, seed, &screen);
        (left.join(), right)
    });
    let first = first.map_err(|_| Failure::running("the load on the plain proxy has panicked"))?;
    let second = bywash.settle(second?)?;
    Ok((plain.close(first?)?, second, bywash))
}

fn print_introduction(
    scenario: &Scenario,
    plain: &Side,
    bywash: &Side,
    folder: &Folder,
) -> Result<(), Failure> {
    let (from, to) = crowd(scenario);
    let (link, top) = (bywash.console(folder)?, bywash.top(folder));
    say(format!(
        "2. Live: two identical shops with real databases and {} workers each, and the\n   \
            same visitors for both. A visitor who waits too long for a page leaves. From\n   \
            second {:.0} to {:.0} the load is {} times what a shop can serve.\n\n     \
              plain proxy  {}\n     bywash       {}\n\n   \
            Watch it in a browser:\n\n     {link}\n\n   \
            or in another terminal:\n\n     {top}\n",
        scenario.workers,
        from.as_secs_f64(),
        to.as_secs_f64(),
        rho(scenario),
        plain.address(),
        bywash.address(),
    ));
    Ok(())
}

/// Returns a table of the outcomes of the requests on both sides. The report has more details.
fn requests(result: &RunResult) -> Table {
    let mut table = Table::new(&[
        ("shop behind", Align::Left),
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
fn json(result: &RunResult, audit: &OrderAudit, verdict: &Verdict) -> Result<Value, Failure> {
    let mut json = to_json(result)?;
    json["orders"] = audit.to_json();
    json["promises"] = verdict.to_json();
    Ok(json)
}
