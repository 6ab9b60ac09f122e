//! Tests of the bounds of the table of populations.

use bywash_units::TimeSpan;

use super::*;
use crate::request::End;

/// Adds a page request of a new client with this user agent.
fn add(counts: &mut PopulationCounts, number: u64, agent: &str) {
    let began = Time::ZERO + TimeSpan::from_secs(1_700_000_000);
    let request = Request {
        began,
        method: "GET",
        target: "/",
        host: None,
        client: Client::Known { number, address: number },
        agent: Some(agent),
        end: End::Answered(200),
        waited: None,
        service: None,
    };
    counts.add(&request, false, began);
}

/// Returns a word without digits, other for each number.
fn word(number: u64) -> String {
    number.to_string().bytes().map(|digit| char::from(digit - b'0' + b'a')).collect()
}

#[test]
fn a_hundred_thousand_user_agents_take_no_more_memory_and_hide_no_population() {
    let mut counts = PopulationCounts::default();
    for number in 0..100_000 {
        add(&mut counts, number, &word(number));
        assert!(counts.known.len() <= MOST);
        // A population that begins late keeps its place as well.
        if number >= 50_000 && number % 5 == 0 {
            let client = if number % 10 == 0 { number + 1_000_000 } else { number + 999_995 };
            add(&mut counts, client, "Firefox/140.0");
        }
    }
    let found = counts.populations().unwrap();
    let [unknown, firefox] = &found.listed[..] else { panic!("{:?}", found.listed) };
    assert_eq!((unknown.family.as_deref(), unknown.requests), (None, 100_000));
    assert!((unknown.addresses as f64 / 1e5 - 1.0).abs() < 0.08, "{unknown:?}");
    assert_eq!((firefox.family.as_deref(), firefox.requests), (Some("Firefox/#"), 10_000));
    assert!(firefox.reads_on > 0.99 && !firefox.reads_one_page, "{firefox:?}");
    assert!(unknown.reads_one_page && unknown.lift < 0.01, "{unknown:?}");
    assert!((found.share_behind - 100_000.0 / 110_000.0).abs() < 1e-6);
}

#[test]
fn lines_without_a_user_agent_are_a_population_if_others_have_one() {
    for agent in ["", "-"] {
        let mut counts = PopulationCounts::default();
        (0..50).for_each(|number| add(&mut counts, number, agent));
        assert!(counts.populations().is_none());
        add(&mut counts, 50, "curl/8");
        let found = counts.populations().unwrap();
        let families: Vec<_> = found.listed.iter().map(|one| one.family.as_deref()).collect();
        assert_eq!(families, [Some(""), Some("curl/#")]);
    }
}
