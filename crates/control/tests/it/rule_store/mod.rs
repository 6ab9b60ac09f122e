//! Tests of decisions about elephants, and of their consequences.

mod asked;
mod decided;
mod followed;
mod found;
mod measured;
mod undone;
mod written;

use bywash_control::{Act, DecisionMeta, Elephant, Gauge, Resource, RuleStore, Timestamp};
use bywash_units::TimeSpan;

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + seconds).expect("a time of this century")
}

fn search() -> Elephant {
    Elephant {
        pattern: "/search?q".into(),
        twins: Vec::new(),
        resource: "db".into(),
        consists_of: Resource::Processors,
        capacity: 2.0,
        used: 0.9,
        cost: 0.1,
        interval: [0.09, 0.11],
        share: 0.8,
        rate: 14.4,
        lasts: 0.15,
        provisional: false,
        by_one: 0.01,
        one_client: None,
        transacts: false,
        correlation: None,
    }
}

fn other(number: usize) -> Elephant {
    Elephant { pattern: format!("/other/{number}"), ..search() }
}

/// Returns an elephant that uses three fifths of a line of 10 MB/s. Other requests use a tenth of
/// it.
fn download() -> Elephant {
    Elephant {
        pattern: "/download/*".into(),
        resource: "line".into(),
        consists_of: Resource::Bytes,
        capacity: 1e7,
        used: 0.7,
        cost: 1e6,
        interval: [1e6; 2],
        share: 6.0 / 7.0,
        rate: 6.0,
        ..search()
    }
}

fn meta(hours: u64) -> DecisionMeta {
    let lasts = TimeSpan::from_secs(hours * 3600);
    DecisionMeta { by: "the night shift".into(), why: "the database is full".into(), lasts }
}

fn briefly() -> DecisionMeta {
    DecisionMeta { lasts: TimeSpan::from_secs(600), ..meta(1) }
}

/// Returns a rule store in which an elephant, the search, was found.
fn store() -> RuleStore {
    let mut store = RuleStore::default();
    let notes = store.found(at(0), vec![search()], Act::Propose);
    assert_eq!(notes.len(), 1, "{notes:?}");
    store
}

fn nothing(_: &bywash_control::Entry, _: Timestamp, _: Timestamp) -> Gauge {
    panic!("no trial is over")
}
