//! `bywash demo`: a shop that keeps selling through a flash crowd, beside one that does not.
//!
//! First the seed's policies in virtual time, within a second. Then two identical shops with real
//! databases, one behind a plain proxy and one behind bywash, and the same visitors for both: for
//! each there is one set of random numbers, so they come at the same moments, want the same pages
//! and ask for the same work. Last the books: orders are counted from the shops' own databases.
//! The exit code says whether the promises were kept.

mod books;
mod page;
mod screen;
mod side;
mod verdict;

use std::path::Path;

use bywash_report::table;
use bywash_scenario::file::Length;
use bywash_scenario::{Closes, Scenario};

use crate::args::Demo;
use crate::failure::Failure;
use crate::lab::{to_json, write_report};
use crate::{print, print_json};
use books::Books;
use screen::Screen;
use side::{Kind, Outcome, Side};
use verdict::Verdict;

const SEED_1: &str = include_str!("../../../../lab/scenarios/seed-1.toml");
const FLASH_CROWD: &str = include_str!("../../../../lab/scenarios/flash-crowd.toml");

pub(crate) fn demo(args: &Demo) -> Result<(), Failure> {
    foretell()?;
    let scenario = scenario(FLASH_CROWD)?;
    let (plain, bywash) = play(&scenario, args.seed)?;
    let books = Books::audit(&scenario, args.seed, &plain, &bywash)?;
    let verdict = Verdict::of(&scenario, &books, &plain, &bywash);
    let result = side::joined(&scenario, args.seed, &plain, &bywash);
    if args.json {
        print_json(&to_json(&result)?)?;
    } else {
        print(&format!("\n{}\n{}\n{verdict}", table::cells(&result), books.table()))?;
    }
    write_report(&args.report, &page::report(&scenario, &result, &books, &verdict))?;
    verdict.into_result()
}

fn scenario(text: &str) -> Result<Scenario, Failure> {
    Scenario::parse(text, Path::new(".")).map_err(Failure::running)
}

/// Part one: seed 1's shop in virtual time. Short, so that it takes less than a second; the whole
/// is `bywash lab sim lab/scenarios/seed-1.toml`.
fn foretell() -> Result<(), Failure> {
    let mut scenario = scenario(SEED_1)?;
    scenario.rho = vec![1.4, 5.0];
    scenario.closes = vec![Closes::Hidden];
    scenario.seeds = 2;
    scenario.length = Length::Orders(120);
    let (result, _) = bywash_sim::run(&scenario, &|_, _| ()).map_err(Failure::running)?;
    eprintln!(
        "In virtual time: the shop of «A Combined LIFO-Priority Scheme» (2004) at 1.4 and 5 times\n\
         what it can serve. Departures are not seen. Revenue is a share of what is possible.\n"
    );
    eprintln!("{}", table::cells(&result));
    Ok(())
}

/// Part two: live.
fn play(scenario: &Scenario, seed: u64) -> Result<(Outcome, Outcome), Failure> {
    eprintln!(
        "Live: two shops with {} workers each, the same visitors to both, about a minute.",
        scenario.workers
    );
    let plain = Side::open(Kind::Plain, scenario)?;
    let bywash = Side::open(Kind::Bywash, scenario)?;
    eprintln!("  plain proxy  {}\n  bywash       {}\n", plain.address(), bywash.address());
    let screen = Screen::new();
    let (first, second) = std::thread::scope(|scope| {
        let left = scope.spawn(|| plain.play(scenario, seed, &screen));
        let right = bywash.play(scenario, seed, &screen);
        (left.join(), right)
    });
    screen.close();
    let first = first.map_err(|_| Failure::running("the load on the plain proxy has panicked"))?;
    Ok((first?, second?))
}
