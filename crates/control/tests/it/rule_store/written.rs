//! Tests of the stored document, and of rules in the configuration file.

use bywash_control::{
    Act, Change, DecisionMeta, Elephant, FileRule, Limit, Note, Refused, RuleLimits, RuleStore,
    What,
};
use bywash_terminal::text::is_unsafe;

use super::{at, meta, nothing, other, search, store};

#[test]
fn what_was_written_reads_back_and_goes_on() {
    let mut store = store();
    let change = Change {
        rate: Some(Limit::At(2.5)),
        bytes: Some(Limit::At(1_000_000)),
        ..Change::default()
    };
    store.approve(at(1), 1, change, meta(1)).unwrap();
    store.found(at(2), vec![other(1)], Act::Propose);
    store.reject(at(3), 2, meta(2)).unwrap();
    let mut read = RuleStore::read(&store.text()).unwrap();
    assert_eq!(read, store);
    read.found(at(4), vec![other(2)], Act::Propose);
    assert_eq!(read.entries().last().unwrap().number, 3, "a number is given once");
    for wrong in ["", "{", "[]", "{\"entries\": 1, \"next\": 2}", "{\"entries\": [], \"next\": -1}"]
    {
        assert!(RuleStore::read(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn a_book_written_by_hand_holds_no_rule_that_nobody_could_have_approved() {
    let mut store = store();
    store.approve(at(1), 1, Change::default(), meta(1)).unwrap();
    let by_hand = store.text().replace("\"max_concurrency\": 2", "\"max_concurrency\": 0");
    assert_ne!(by_hand, store.text());
    assert_eq!(RuleStore::read(&by_hand).unwrap().in_force(), []);
}

#[test]
fn rules_of_the_file_hold_as_long_as_they_stand_there() {
    let mut store = store();
    store.approve(at(1), 1, Change::default(), meta(1)).unwrap();
    let limits = RuleLimits { max_concurrency: 1, ..RuleLimits::proposed(&search()) };
    let rule = |pattern: &str| FileRule { pattern: pattern.into(), limits, why: "too dear".into() };
    let said = [rule("/search?q"), rule("/export")];
    assert_eq!(store.file_says(at(2), &said).unwrap().len(), 2);
    assert_eq!(store.file_says(at(3), &said).unwrap(), [], "nothing is new");
    assert_eq!(store.undo(at(4), 1, meta(1)), Err(Refused::InFile));
    assert_eq!(store.approve(at(4), 1, Change::default(), meta(1)), Err(Refused::InFile));
    assert_eq!(store.tick(at(1_000_000), nothing), []);
    let what = |notes: Vec<Note>| notes.iter().map(|note| note.what).collect::<Vec<_>>();
    assert_eq!(what(store.file_says(at(5), &said[..1]).unwrap()), [What::Undone]);
    assert_eq!(store.in_force().len(), 1);
}

#[test]
fn what_is_exported_can_stand_in_the_file() {
    let mut store = store();
    let change = Change { rate: Some(Limit::At(2.0)), ..Change::default() };
    let why = DecisionMeta { why: "say \"no\" \\ ok".into(), ..meta(1) };
    store.approve(at(1), 1, change, why).unwrap();
    let text = store.exported();
    let file: toml::Table = text.parse().unwrap_or_else(|error| panic!("{error}: {text}"));
    let rule = &file["throttle"]["elephant-1"];
    assert_eq!(rule["match"].as_str(), Some("/search?q"));
    assert_eq!(rule["why"].as_str(), Some("say \"no\" \\ ok"));
    assert_eq!(
        (rule["max_concurrency"].as_integer(), rule["rate"].as_float()),
        (Some(2), Some(2.0))
    );
    assert_eq!(rule["wait"].as_str(), Some("10s"));
}

#[test]
fn what_is_exported_of_a_name_with_a_control_character_is_toml() {
    let mut store = RuleStore::default();
    let pattern = "/a\u{7f}\u{1}\"\\b\u{202e}\u{e0001}";
    store.found(at(0), vec![Elephant { pattern: pattern.into(), ..search() }], Act::Propose);
    store.approve(at(1), 1, Change::default(), meta(1)).expect("a rule");
    let text = store.exported();
    let read: toml::Table = text.parse().unwrap_or_else(|why| panic!("{why}: {text:?}"));
    let rules = read["throttle"].as_table().expect("rules by name");
    assert!(rules.values().all(|rule| rule["match"].as_str() == Some(pattern)), "{text}");
    assert!(!text.contains(|c: char| c != '\n' && is_unsafe(c)), "{text:?}");
}
