//! The demo with scrapers: a wiki that stays open to readers, next to one that does not.
//!
//! The wikis have no orders, no sessions and no cookies, and the gateway has no classes. Readers
//! have five heads, and half of them keep cookies. Scrapers have the heads of three HTTP libraries,
//! claim to be browsers, and use an address for one request only. The scenarios say where their
//! numbers come from (`lab/scenarios/scrape-*.toml`). None was chosen by its result.

mod heads;
mod times;
mod wiki;

use bywash_command::Failure;
use bywash_command::streams::say;
use bywash_load::{Options, Run};
use bywash_scenario::Scenario;

use super::folder::Folder;
use super::page::Story;
use super::phases::{Phase, Phases, overload};
use super::screen::Screen;
use super::side::{self, ProxyKind, Side, SiteConfig, at_once, rho};
use super::verdict::{Verdict, more, no_refusals, possible};
use super::words::WIKI;
use super::{deliver, scenario};
use crate::args::Demo;
use heads::{READERS, SCRAPERS};
use times::Times;
use wiki::Wiki;

const READING: &str = include_str!("../../../../../scenarios/scrape-readers.toml");
const SCRAPING: &str = include_str!("../../../../../scenarios/scrape-scrapers.toml");

/// The share of readers that keep cookies.
const KEEP_COOKIES: f64 = 0.5;
/// The number that is added to a scraper's own to get its address, so that no scraper has the
/// address of a reader.
const SCRAPERS_FROM: u64 = 64 << 16;

/// The readers and the scrapers of the demo.
struct Load {
    readers: Scenario,
    scrapers: Scenario,
    seed: u64,
}

/// The outcome of a run on one side, for the readers and for the scrapers.
struct Outcome {
    kind: ProxyKind,
    readers: Run,
    scrapers: Run,
}

/// Runs the demo.
pub(super) fn run(args: &Demo) -> Result<(), Failure> {
    say("More scrapers than a wiki can serve, with and without bywash. It takes 75 seconds.\n");
    let (readers, scrapers) = (scenario(READING)?, scenario(SCRAPING)?);
    let load = Load { readers, scrapers, seed: args.seed };
    let folder = Folder::new().map_err(Failure::running)?;
    folder.remove_on_signals().map_err(Failure::running)?;
    let story = story(&load, &play(&load, &folder)?)?;
    deliver(args, &story)?;
    story.verdict.into_result()
}

fn open(kind: ProxyKind, readers: &Scenario, folder: &Folder) -> Result<Side<Wiki>, Failure> {
    let keys = folder.file("tokens.key");
    bywash_command::operators::ensure(&keys).map_err(Failure::running)?;
    let own = SiteConfig {
        identify: format!(
            "identify.session = \"token\"\nidentify.token_keys = \"{}\"",
            keys.display()
        ),
        classes: String::new(),
    };
    let wiki = Wiki::start(readers.workers).map_err(Failure::running)?;
    Side::open(kind, wiki, &own, readers, folder)
}

fn play(load: &Load, folder: &Folder) -> Result<[Outcome; 2], Failure> {
    let plain = open(ProxyKind::Plain, &load.readers, folder)?;
    let bywash = open(ProxyKind::Bywash, &load.readers, folder)?;
    let (from, to) = overload(&load.scrapers);
    say(format!(
        "Two identical wikis with {} workers each, and the same readers and scrapers for both.\n\
         A reader who waits too long for a page leaves. From second {:.0} to {:.0} scrapers ask\n\
         for {} times what a wiki can serve, with one request for each address.\n",
        load.readers.workers,
        from.as_secs_f64(),
        to.as_secs_f64(),
        rho(&load.scrapers),
    ));
    side::print_addresses([&plain, &bywash], folder)?;
    let screen = Screen::new(&load.scrapers, WIKI);
    let (first, second) =
        at_once(|| plain.play_load(load, &screen), || bywash.play_load(load, &screen))?;
    drop([plain.close(), bywash.close()]);
    Ok([first, second])
}

impl Side<Wiki> {
    /// Plays the readers and the scrapers against this side at the same time.
    fn play_load(&self, load: &Load, screen: &Screen) -> Result<Outcome, Failure> {
        let Load { readers, scrapers, seed } = load;
        let scraping = Options {
            heads: SCRAPERS.into(),
            first_address: SCRAPERS_FROM,
            ..self.options(rho(scrapers), *seed)
        };
        let reading = Options {
            heads: READERS.into(),
            keep_cookies: KEEP_COOKIES,
            ..self.options(rho(readers), *seed)
        };
        let (scrapers, readers) = at_once(
            || self.play(scrapers, scraping, &mut |_| ()),
            || self.play(readers, reading, &mut |progress| screen.show(self.kind, progress)),
        )?;
        Ok(Outcome { kind: self.kind, readers, scrapers })
    }
}

fn story(load: &Load, sides: &[Outcome; 2]) -> Result<Story, Failure> {
    let Load { readers, scrapers, seed } = load;
    let overload = overload(scrapers);
    let mut phases = Phases::plan(readers, *seed, overload, &WIKI);
    for side in sides {
        let seen = side.readers.confirmed.iter().map(|page| Some(page.visitor));
        phases.count(side.kind, seen)?;
    }
    let [plain, bywash] = sides;
    let times = [Times::of(&phases, &plain.readers)?, Times::of(&phases, &bywash.readers)?];
    let label = |side: &Outcome, who: &str| format!("{}: {who}", side.kind.label());
    let row = |side| (label(side, "readers"), &side.readers);
    let mut result = side::join(readers, *seed, [row(plain), row(bywash)]);
    let row = |side| (label(side, "scrapers"), &side.scrapers);
    let scraped = side::join(scrapers, *seed, [row(plain), row(bywash)]);
    result.cells.extend(scraped.cells);
    let scraping = phases.overloaded();
    let promises = vec![
        possible(scraping, "readers get at least 90 % of their pages while scrapers come"),
        more(scraping, "readers get at least five times the pages that they get without bywash"),
        times[1].promise(),
        no_refusals(scrapers, &result.cells[1], "the scrapers"),
    ];
    Ok(Story {
        words: WIKI,
        title: "Scrapers on a wiki, with and without bywash",
        headline: headline(&phases),
        setting: setting(load),
        counted: "Counted by the readers' own clients: a page counts if it came in time. \
             “Intended” are the pages that readers meant to read. A wiki has capacity for all of \
             them, because readers ask for half of what it can serve. Readers who came just before the scrapers \
             were still reading when they arrived.",
        tables: vec![times::table(&phases, &times)],
        phases,
        verdict: Verdict { promises, invalid: result.invalid.clone().or(scraped.invalid) },
        result,
        overload,
    })
}

/// Returns a summary of the pages in two lines.
fn headline(pages: &Phases) -> String {
    let Phase { planned, plain, bywash, .. } = pages.overloaded();
    format!(
        "Readers who came together with the scrapers meant to read {planned} pages.\n\
         Behind bywash they got {bywash} in time; behind a plain proxy, {plain}."
    )
}

fn setting(load: &Load) -> String {
    let (from, to) = overload(&load.scrapers);
    format!(
        "Two identical wikis with {} workers each, one behind a plain proxy and one behind bywash. \
         The same readers and scrapers came to both at the same moments. Readers ask for {} times \
         what a wiki can serve. They read several pages each, and a reader who waits too long for \
         a page leaves. From second {:.0} to second {:.0} scrapers asked for {} times what a wiki \
         can serve: histories of pages, one request for each address.",
        load.readers.workers,
        rho(&load.readers),
        from.as_secs_f64(),
        to.as_secs_f64(),
        rho(&load.scrapers),
    )
}

#[cfg(test)]
mod tests {
    use bywash_scenario::{Distribution, Profile};
    use bywash_units::{Time, TimeSpan};

    use super::*;

    #[test]
    fn readers_get_all_that_they_mean_to_read_of_a_wiki_without_scrapers() {
        let mut readers = scenario(READING).unwrap();
        readers.client.think = Distribution::Constant(TimeSpan::from_millis(1));
        readers.profile = Profile::Times(vec![Time::ZERO; 20]);
        let mut scrapers = scenario(SCRAPING).unwrap();
        scrapers.profile = Profile::Times(vec![Time::ZERO]);
        let load = Load { readers, scrapers, seed: 1 };
        let all = tempfile::tempdir().unwrap();
        let folder = Folder::new_in(all.path()).unwrap();
        let screen = Screen::new(&load.scrapers, WIKI);
        let sides = [ProxyKind::Plain, ProxyKind::Bywash].map(|kind| {
            let side = open(kind, &load.readers, &folder).unwrap();
            side.play_load(&load, &screen).unwrap()
        });
        let story = story(&load, &sides).unwrap();
        let Phase { planned, plain, bywash, .. } = *story.phases.overloaded();
        assert!(planned >= 20);
        assert_eq!((plain, bywash), (planned, planned));
        let labels: Vec<&str> =
            story.result.cells.iter().map(|cell| cell.policy.as_str()).collect();
        assert_eq!(labels[1..3], ["bywash: readers", "plain proxy: scrapers"]);
    }

    #[test]
    fn scrapers_are_four_fifths_of_the_work_and_none_has_a_readers_address() {
        let [readers, scrapers] = [READING, SCRAPING].map(|text| scenario(text).unwrap());
        let work = rho(&scrapers) / (rho(&scrapers) + rho(&readers));
        assert!((work - 0.8).abs() < 1e-9, "{work}");
        assert_eq!(readers.workers, scrapers.workers);
        assert_eq!(readers.duration(rho(&readers)), scrapers.duration(rho(&scrapers)));
        assert!(readers.sessions(rho(&readers)) * 3.0 > 1000.0, "a third is the calm before");
        for scenario in [readers, scrapers] {
            assert!(scenario.sessions(rho(&scenario)) < SCRAPERS_FROM as f64 / 2.0);
        }
    }
}
