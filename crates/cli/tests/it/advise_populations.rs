//! Tests of what `bywash advise` prints about populations of clients.

use std::fmt::Write as _;

use bywash_terminal::text::is_unsafe;
use serde_json::json;

use crate::advise::{advise, notes};
use crate::binary::bywash;
use crate::folder::Folder;

const FIREFOX: &str = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0";
const FORGED: &str = "Mozilla/5.0 (Windows NT 10.0) \u{1b}[2J\u{202e} Chrome/138.0.0.0";

/// Returns a log of nginx in JSON: 400 visitors who read three articles, and 1600 requests of a
/// scraper with one address each.
fn wiki(agent_of_scraper: &str) -> String {
    let mut log = String::new();
    let mut add = |second: u64, address: String, target: String, agent: &str, took: f64| {
        let line = json!({
            "msec": format!("{}.0", 1_700_000_000 + second), "remote_addr": address,
            "request": format!("GET {target} HTTP/1.1"), "status": "200",
            "request_time": took.to_string(), "http_user_agent": agent,
        });
        let _ = writeln!(log, "{line}");
    };
    for second in 0..800 {
        for page in 0..3 * u64::from(second % 2 == 0) {
            let address = format!("10.0.{}.{}", second / 250, second % 250);
            add(second, address, format!("/wiki/Article_{page}"), FIREFOX, 0.05);
        }
        for number in 2 * second..2 * second + 2 {
            let address = format!("10.9.{}.{}", number / 250, number % 250);
            let target = format!("/index.php?oldid={number}");
            add(second, address, target, agent_of_scraper, 0.2);
        }
    }
    log
}

#[test]
fn a_scraper_is_printed_with_its_share_and_the_setting() {
    let folder = Folder::new();
    let outcome = bywash(&["advise", &folder.file("access.log", wiki(FORGED))]);
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    let text = &outcome.out;
    assert!(!text.contains(|c: char| c != '\n' && is_unsafe(c)), "{text}");
    let row = text.lines().find(|line| line.contains("one page a visit  Mozilla")).unwrap();
    assert!(row.contains(r"Mozilla/# (Windows NT #) \u{1b}[#J\u{202e} Chrome/#"), "{row}");
    let cells: Vec<&str> = row.split_whitespace().collect();
    assert_eq!((cells[..5].join(" "), cells[7]), ("57 % 84 % 1600".into(), "1600"), "{row}");
    for expected in [
        "1 population reads one page a visit: 57 % of the page requests and 84 % of their service time.",
        "identify.populations, on by default",
    ] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
}

#[test]
fn the_json_has_the_populations_or_null() {
    let found = advise(wiki(FORGED), &[]);
    let populations = &found["populations"];
    assert_eq!(populations["listed"].as_array().unwrap().len(), 2);
    let scraper = &populations["listed"][0];
    assert_eq!(scraper["reads_one_page"], true, "{scraper}");
    assert_eq!((&scraper["visits"], &scraper["reads_on"]), (&json!(1600), &json!(0.0)));
    assert_eq!(populations["cost_behind"], scraper["of_cost"]);
    assert!(
        found["toml"].as_str().unwrap().contains("# 1 population reads one page a visit: 57 %")
    );
    // A visitor's user agent is no scraper's.
    let found = advise(wiki(FIREFOX), &[]);
    assert_eq!(found["populations"]["listed"][0]["reads_one_page"], json!(false), "{found}");
    let found = advise(wiki("").replace(FIREFOX, "-"), &[]);
    assert!(found["populations"].is_null());
    assert!(notes(&found).contains("populations of clients cannot be told apart"), "{found}");
}
