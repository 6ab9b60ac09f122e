//! The demo with a flash crowd: a shop that keeps selling, next to one that does not.
//!
//! Part one simulates the policies of paper 1 in virtual time, within a second. Part two has two
//! shops with real databases. At its end, orders are counted in the shops' own databases.
//!
//! A user who watches on a terminal may stay for part three. The shop behind bywash stays open, a
//! crawler comes, and the console ([`interactive`]) shows the crawler's cost and the effect of a
//! rule.

use std::io::IsTerminal;

use bywash_command::Failure;
use bywash_command::browser;
use bywash_command::streams::{is_terminal, say};
use bywash_scenario::Scenario;

use super::folder::{self, Folder};
use super::page::Story;
use super::phases::{Phase, Phases, overload};
use super::screen::Screen;
use super::shop_side::{self, Outcome, ShopSite};
use super::side::{self, ProxyKind, Side, at_once, rho};
use super::verdict::Verdict;
use super::words::SHOP;
use super::{deliver, interactive, scenario, simulation};
use crate::args::{Demo, Stay};

const PAPER_1: &str = include_str!("../../../../../papers/1-lifo-pri/scenarios/paper-1.toml");
pub(super) const FLASH_CROWD: &str = include_str!("../../../../scenarios/flash-crowd.toml");

/// Runs all parts of the demo.
pub(super) fn run(args: &Demo) -> Result<(), Failure> {
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
    let crawler = super::scenario(interactive::CRAWLER)?;
    let folder = Folder::new().map_err(Failure::running)?;
    folder.remove_on_signals().map_err(Failure::running)?;
    let (plain, bywash, side) = play(&scenario, args, &folder)?;
    let story = story(&scenario, args.seed, &plain, &bywash)?;
    deliver(args, &story)?;
    let kept = story.verdict.into_result();
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

/// Runs part two against both shops. Returns the outcome of each side, and the side behind bywash,
/// which stays open.
fn play(
    scenario: &Scenario,
    args: &Demo,
    folder: &Folder,
) -> Result<(Outcome, Outcome, Side<ShopSite>), Failure> {
    let plain = shop_side::open(ProxyKind::Plain, scenario, folder)?;
    let bywash = shop_side::open(ProxyKind::Bywash, scenario, folder)?;
    let (from, to) = overload(scenario);
    say(format!(
        "2. Live: two identical shops with real databases and {} workers each, and the\n   \
            same visitors for both. A visitor who waits too long for a page leaves. From\n   \
            second {:.0} to {:.0} the load is {} times what a shop can serve.\n",
        scenario.workers,
        from.as_secs_f64(),
        to.as_secs_f64(),
        rho(scenario),
    ));
    side::print_addresses([&plain, &bywash], folder)?;
    if should_stay_open(args) {
        browser::open(&bywash.console(folder)?);
    }
    let screen = Screen::new(scenario, SHOP);
    let (first, second) = at_once(
        || plain.play_crowd(scenario, args.seed, &screen),
        || bywash.play_crowd(scenario, args.seed, &screen),
    )?;
    let second = bywash.settle(second)?;
    Ok((plain.end(first)?, second, bywash))
}

fn story(
    scenario: &Scenario,
    seed: u64,
    plain: &Outcome,
    bywash: &Outcome,
) -> Result<Story, Failure> {
    let sides = [plain, bywash];
    let phases = shop_side::count_orders(scenario, seed, sides)?;
    let runs = sides.map(|outcome| (outcome.kind.label().to_owned(), &outcome.run));
    let result = side::join(scenario, seed, runs);
    let (from, to) = overload(scenario);
    Ok(Story {
        words: SHOP,
        title: "A flash crowd, with and without bywash",
        headline: headline(&phases),
        setting: format!(
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
        counted: "Counted in the shops' own databases: an order is a committed row. “Capacity \
             for” is what the visitors meant to buy, times the share of the load that a shop could \
             carry when they arrived. A shop that serves buyers first, or goes on selling after the \
             crowd has left, can do a little better. Visitors who came just before the crowd were \
             still shopping when it arrived.",
        verdict: Verdict::of(scenario, &phases, &result, sides),
        phases,
        tables: Vec::new(),
        result,
        overload: (from, to),
    })
}

/// Returns a summary of the orders in two lines.
fn headline(orders: &Phases) -> String {
    let Phase { planned, possible, plain, bywash, .. } = orders.overloaded();
    format!(
        "The crowd meant to buy {planned} times, and a shop had capacity for about {possible:.0}.\n\
         Behind bywash it sold {bywash}; behind a plain proxy, {plain}."
    )
}
