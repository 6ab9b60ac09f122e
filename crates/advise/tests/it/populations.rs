//! Tests that the advice names scrapers, and nobody else.

use bywash_advise::{Advice, Around, Client, End, Population, Request, Settings, Summary, file};
use bywash_units::{Time, TimeSpan};

const BROWSERS: [&str; 4] = [
    "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0",
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:139.0) Gecko/20100101 Firefox/139.0",
    "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) \
     Version/18.5 Safari/605.1.15",
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) \
     Chrome/138.0.0.0 Safari/537.36",
];
const FORGED: &str = "Mozilla/5.0 (Windows NT 6.1; WOW64) AppleWebKit/537.36 (KHTML, like Gecko) \
                      Chrome/VERSION.0.0.0 Safari/537.36";
const CRAWLER: &str = "ExampleFetcher/2.1 (+https://fetcher.example/about)";

/// A request of a log: milliseconds after its start, the client, its user agent, the target and the
/// service time in seconds.
type Line = (u64, Client, String, String, f64);

/// Returns a pseudo-random number below `most`, the same for the same `seed`.
fn draw(seed: u64, most: u64) -> u64 {
    let mixed = (seed ^ (seed >> 31)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) % most
}

fn known(number: u64) -> Client {
    Client::Known { number: number.wrapping_mul(0x9e37_79b9_7f4a_7c15), address: number }
}

/// Returns the requests of visitors for articles that others read as well. Each takes 30 ms. Two in
/// three read on, and `has_files` adds the style sheet of their first page.
fn readers(visitors: u64, has_files: bool) -> Vec<Line> {
    let mut lines = Vec::new();
    for visitor in 0..visitors {
        let agent = BROWSERS[draw(visitor, 4) as usize];
        for page in 0..=2 * u64::from(draw(visitor + 7, 3) > 0) {
            let at = visitor * 1000 + page * 20_000;
            let target = format!("/wiki/Article_{}", draw(visitor * 8 + page, 40));
            lines.push((at, known(visitor), agent.into(), target, 0.03));
        }
        if has_files {
            let at = visitor * 1000 + 100;
            lines.push((at, known(visitor), agent.into(), "/load.css".into(), 0.001));
        }
    }
    lines
}

/// Returns the requests of a scraper for old versions of articles, one for each address. Each takes
/// 200 ms.
fn scraper(requests: u64, lasts: u64, agent: impl Fn(u64) -> String) -> Vec<Line> {
    let line = |number: u64| {
        let target = format!("/index.php?oldid={}&action=history", draw(number, 100_000));
        let at = number * lasts * 1000 / requests;
        (at, known(1_000_000 + number), agent(number), target, 0.2)
    };
    (0..requests).map(line).collect()
}

fn advice(mut lines: Vec<Line>, has_times: bool) -> Advice {
    lines.sort_by_key(|line| line.0);
    let mut summary = Summary::new(Settings::default());
    for line in &lines {
        add(&mut summary, 0, line, has_times);
    }
    summary.advice()
}

fn add(summary: &mut Summary, day: u64, line: &Line, has_times: bool) {
    let (at, client, agent, target, service) = line;
    let midnight = Time::ZERO + TimeSpan::from_secs(1_700_000_000 + day * 86_400);
    summary.add(&Request {
        began: midnight + TimeSpan::from_millis(*at),
        method: "GET",
        target,
        host: None,
        client: *client,
        agent: Some(agent),
        end: End::Answered(200),
        waited: None,
        service: has_times.then(|| TimeSpan::from_secs_f64(*service)),
    });
}

fn listed(advice: &Advice) -> &[Population] {
    advice.populations.as_ref().map_or(&[], |found| &found.listed)
}

fn scrapers(advice: &Advice) -> Vec<&Population> {
    listed(advice).iter().filter(|one| one.reads_one_page).collect()
}

fn toml(advice: &Advice) -> String {
    let server = "http://127.0.0.1:1";
    file(advice, &Around { log: "x", server, nginx_saw_departures: false })
}

#[test]
fn a_scraper_with_one_address_for_each_request_is_named_whatever_its_user_agent() {
    let one = |number: u64| FORGED.replace("VERSION", &draw(number, 40).to_string());
    let mut lines = readers(3000, true);
    lines.extend(scraper(12_000, 3000, one));
    let advice = advice(lines, true);
    let [found] = scrapers(&advice)[..] else { panic!("{:?}", listed(&advice)) };
    assert_eq!(
        found.family.as_deref(),
        Some(
            &*FORGED
                .replace("VERSION.0.0.0", "#")
                .replace("5.0", "#")
                .replace("6.1", "#")
                .replace("WOW64", "WOW#")
                .replace("537.36", "#")
        )
    );
    assert_eq!((found.requests, found.visits, found.is_declared), (12_000, 12_000, false));
    assert!((found.per_address - 1.0).abs() < 0.08 && found.reads_on == 0.0, "{found:?}");
    assert!(found.lift < 0.01 && found.spread > 0.99, "{found:?}");
    let all = advice.populations.as_ref().unwrap();
    let pages = 12_000.0 + (12_000.0 * found.share.recip() - 12_000.0).round();
    assert!((all.share_behind - 12_000.0 / pages).abs() < 1e-9 && all.share_behind > 0.55);
    assert!(all.cost_behind > all.share_behind, "{all:?}");
    assert_eq!(listed(&advice).len(), 5, "{:?}", listed(&advice));
    for reader in listed(&advice).iter().filter(|one| !one.reads_one_page) {
        assert!(reader.lift > 1.0 && reader.spread < 0.05 && reader.reads_on > 0.9, "{reader:?}");
    }
    let said = "# 1 population reads one page a visit: 6";
    assert!(toml(&advice).contains(said), "{}", toml(&advice));
}

#[test]
fn a_scraper_with_a_generator_of_user_agents_is_named_as_one_population() {
    let letter = |number: u64| char::from(b'a' + number as u8);
    let drawn = |number: u64| {
        let seed = draw(number, 20_000);
        format!(
            "Mozilla/5.0 ({}{}{}) Blink",
            letter(seed % 26),
            letter(seed / 26 % 26),
            letter(seed / 676 % 26)
        )
    };
    let mut lines = readers(3000, false);
    lines.extend(scraper(12_000, 3000, drawn));
    let advice = advice(lines, false);
    let [found] = scrapers(&advice)[..] else { panic!("{:?}", listed(&advice)) };
    assert!(found.family.is_none() && found.requests > 11_900, "{found:?}");
    assert!((found.of_cost - found.share).abs() < 1e-9, "without durations, pages are the cost");
    assert!(found.spread > 0.9, "{found:?}");
    let all = advice.populations.as_ref().unwrap();
    assert!(!all.has_times && !all.has_files);
}

#[test]
fn visitors_of_a_shop_are_no_scrapers() {
    for has_files in [false, true] {
        // One visitor in three reads one page. One browser is rare.
        let mut lines = readers(3000, has_files);
        lines.extend(scraper(90, 3000, |_| "RareBrowser/1".into()));
        let advice = advice(lines, true);
        assert!(scrapers(&advice).is_empty(), "{:?}", listed(&advice));
        let all = advice.populations.as_ref().unwrap();
        assert!(all.share_behind == 0.0 && all.finding().is_none());
        assert!(!toml(&advice).contains("one page a visit"), "{}", toml(&advice));
        assert_eq!(all.has_files, has_files);
    }
}

#[test]
fn a_population_of_readers_of_one_page_needs_visits_and_load_to_be_named() {
    // 99 visits are too few, and 4 % of the load is too little.
    for (visitors, requests, is_named) in
        [(600, 99, false), (600, 110, true), (6000, 500, false), (6000, 1200, true)]
    {
        let mut lines = readers(visitors, false);
        lines.extend(scraper(requests, visitors, |_| "Forged/1.0".into()));
        for line in &mut lines {
            line.4 = 0.1;
        }
        let found = advice(lines, true);
        assert_eq!(!scrapers(&found).is_empty(), is_named, "{requests}: {:?}", listed(&found));
    }
}

#[test]
fn declared_robots_are_marked_whether_they_read_on_or_not() {
    let mut lines = readers(1000, false);
    lines.extend(scraper(1000, 1000, |_| CRAWLER.into()));
    for number in 0..300 {
        let robot = Client::Robot { number: 7, address: 7 };
        lines.push((number * 3000, robot, "examplebot".into(), format!("/wiki/{number}"), 0.1));
    }
    let advice = advice(lines, true);
    let declared: Vec<_> = listed(&advice).iter().filter(|one| one.is_declared).collect();
    let [fetcher, bot] = declared[..] else { panic!("{declared:?}") };
    assert!(fetcher.reads_one_page && fetcher.family.as_deref().unwrap().contains("://fetcher"));
    assert_eq!((bot.family.as_deref(), bot.visits, bot.addresses), (Some("examplebot"), 1, 1));
    assert!(!bot.reads_one_page && (bot.per_address - 300.0).abs() < 1e-9, "{bot:?}");
}

#[test]
fn a_log_without_user_agents_says_that_populations_cannot_be_told_apart() {
    let note = "populations of clients cannot be told apart";
    for (agent, is_noted) in [("-", true), ("", true), ("x", false)] {
        let mut lines = readers(100, false);
        for line in &mut lines {
            line.2 = agent.into();
        }
        let advice = advice(lines, true);
        assert_eq!(advice.populations.is_none(), is_noted);
        assert_eq!(advice.notes.iter().any(|one| one.contains(note)), is_noted, "{agent}");
    }
}

#[test]
fn any_user_agent_is_read() {
    for agent in ["\u{1b}[2J\r\n", "\0", "é".repeat(4000).as_str(), "\u{202e}x", "\"},{", "://"] {
        let mut lines = readers(100, false);
        lines.extend(scraper(300, 100, |_| agent.into()));
        let advice = advice(lines, true);
        let [found] = scrapers(&advice)[..] else { panic!("{agent:?}") };
        assert!(found.family.as_ref().unwrap().len() <= 200);
        assert!(!toml(&advice).contains('\u{1b}'));
    }
}

#[test]
fn a_clock_that_was_set_back_ends_visits() {
    let mut lines = readers(100, false);
    lines.extend(scraper(300, 100, |_| "Forged/1.0".into()));
    let mut summary = Summary::new(Settings::default());
    lines.sort_by_key(|line| line.0);
    for day in [1, 0] {
        for line in &lines {
            add(&mut summary, day, line, false);
        }
    }
    let advice = summary.advice();
    let [found] = scrapers(&advice)[..] else { panic!("{:?}", listed(&advice)) };
    assert!(found.reads_on < 0.01 && found.visits > 590, "{found:?}");
}
