//! Tests of findings: how they become entries of the rule store, and rules if the configuration
//! file says so.

use bywash_control::{
    Act, Change, Elephant, FileRule, Origin, Resource, RuleLimits, RuleStore, State, Subject, What,
};

use super::{at, download, meta, nothing, other, search, store};

#[test]
fn what_was_found_is_proposed_once_and_holds_nobody_back() {
    let mut store = store();
    assert_eq!(store.found(at(30), vec![search()], Act::Propose), []);
    let entry = store.entry(1).unwrap();
    assert_eq!((entry.since, entry.seen, &entry.state), (at(0), at(30), &State::Proposed));
    assert_eq!(store.in_force(), []);
}

#[test]
fn without_asking_only_what_is_sure_is_held_back_and_not_for_long() {
    let unsure = [
        Elephant { provisional: true, ..search() },
        Elephant { by_one: 0.31, ..search() },
        Elephant { transacts: true, ..search() },
        Elephant { rate: 3.0, ..search() },
        Elephant { consists_of: Resource::Other, ..search() },
        Elephant { consists_of: Resource::Slots, ..search() },
        download(),
        Elephant { twins: vec!["/picture".into()], ..search() },
    ];
    for elephant in unsure {
        let mut store = RuleStore::default();
        store.found(at(0), vec![elephant.clone()], Act::Auto);
        assert_eq!(store.in_force(), [], "{elephant:?}");
    }
    let mut store = RuleStore::default();
    let notes = store.found(at(0), vec![search()], Act::Auto);
    assert_eq!(
        notes.iter().map(|note| note.what).collect::<Vec<_>>(),
        [What::Proposed, What::Approved]
    );
    let State::Ruled(rule) = &store.entry(1).unwrap().state else { panic!("it is held back") };
    assert_eq!((rule.origin, rule.until), (Origin::Auto, Some(at(3600))));
}

#[test]
fn what_was_provisional_and_is_not_found_again_was_nothing() {
    let mut store = RuleStore::default();
    let early = Elephant { provisional: true, ..search() };
    assert_eq!(store.found(at(0), vec![early.clone(), other(1)], Act::Propose).len(), 1);
    assert_eq!(store.found(at(10), vec![early], Act::Propose), []);
    assert_eq!(store.entries().len(), 2, "what was sure stays for a while");
    let notes = store.found(at(20), vec![search()], Act::Propose);
    let number = store.entries().iter().find(|entry| entry.pattern == "/search?q").unwrap().number;
    assert_eq!(
        notes.iter().map(|note| note.subject.clone()).collect::<Vec<_>>(),
        [Subject::Elephant { number, pattern: "/search?q".into() }],
        "it is sure now"
    );
    let again = Elephant { provisional: true, ..other(2) };
    store.found(at(30), vec![again], Act::Propose);
    store.approve(at(31), 3, Change::default(), meta(1)).unwrap();
    store.found(at(40), Vec::new(), Act::Propose);
    assert_eq!(store.entries().len(), 3, "a decision keeps it");
}

#[test]
fn what_is_not_found_any_more_and_not_decided_is_forgotten_after_a_week() {
    let mut store = store();
    store.tick(at(7 * 86_400 - 1), nothing);
    assert_eq!(store.entries().len(), 1);
    store.tick(at(7 * 86_400), nothing);
    assert_eq!(store.entries().len(), 0);
}

#[test]
fn of_a_page_that_fills_two_resources_the_fuller_one_is_shown() {
    let mut store = RuleStore::default();
    let disk = Elephant { resource: "disk".into(), rate: 5.0, ..search() };
    store.found(at(0), vec![search(), disk.clone()], Act::Propose);
    assert_eq!(store.entries()[0].found.as_ref().unwrap().resource, "db");
    store.found(at(1), vec![disk.clone(), search()], Act::Propose);
    assert_eq!(store.entries()[0].found.as_ref().unwrap().resource, "db");
    let fuller = Elephant { provisional: true, ..search() };
    for at_once in [vec![fuller.clone(), disk.clone()], vec![disk, fuller]] {
        let notes = store.found(at(2), at_once, Act::Propose);
        assert_eq!(store.entries()[0].found.as_ref().unwrap().resource, "disk", "that is sure");
        assert_eq!(notes, [], "it was proposed before");
    }
    // A request that waits for a disk holds a slot as well.
    let disk = Elephant { resource: "disk".into(), provisional: true, rate: 5.0, ..search() };
    let slots = Elephant { consists_of: Resource::Slots, resource: "slots".into(), ..search() };
    store.found(at(3), vec![slots.clone(), disk], Act::Propose);
    assert_eq!(store.entries()[0].found.as_ref().unwrap().resource, "disk");
    let notes = store.found(at(4), vec![slots], Act::Propose);
    assert_eq!(store.entries()[0].found.as_ref().unwrap().resource, "slots");
    assert_eq!(notes, [], "it is said once");
}

#[test]
fn what_is_ruled_is_measured_by_the_resource_that_it_was_ruled_for() {
    let mut store = store();
    store.approve(at(1), 1, Change::default(), meta(1)).expect("a rule");
    let (resource, consists_of) = ("line".into(), Resource::Bytes);
    let line = Elephant { resource, consists_of, ..search() };
    let of = |store: &RuleStore| store.entry(1).unwrap().found.as_ref().unwrap().resource.clone();
    store.found(at(2), vec![line.clone()], Act::Propose);
    assert_eq!(of(&store), "db");
    store.undo(at(3), 1, meta(1)).expect("it is undone");
    store.found(at(4), vec![line], Act::Propose);
    assert_eq!(of(&store), "line", "of what is proposed, what it fills now");
}

#[test]
fn of_a_rule_of_the_file_it_is_told_what_these_requests_fill_most() {
    let mut store = RuleStore::default();
    let limits = RuleLimits::proposed(&search());
    let said = FileRule { pattern: search().pattern, why: "so".into(), limits };
    store.file_says(at(0), &[said]).expect("a rule");
    let slots = Elephant { resource: "slots".into(), consists_of: Resource::Slots, ..search() };
    store.found(at(1), vec![slots.clone()], Act::Propose);
    store.found(at(2), vec![slots, search()], Act::Propose);
    assert_eq!(store.entry(1).unwrap().found.as_ref().unwrap().resource, "db");
}
