//! Tests of decisions that operators undo.

use bywash_control::{Act, Change, Elephant, FileRule, MOST_ENTRIES, RuleLimits, RuleStore, State};

use super::{at, meta, nothing, other, search, store};

#[test]
fn what_is_undone_is_left_alone_for_as_long_as_was_said_whatever_it_was() {
    let decisions: [fn(&mut RuleStore); 4] = [
        |store| drop(store.reject(at(1), 1, meta(1)).expect("it is rejected")),
        |store| drop(store.approve(at(1), 1, Change::default(), meta(1)).expect("it is ruled")),
        |store| drop(store.found(at(1), vec![search()], Act::Auto)),
        |store| {
            store.found(at(1), vec![search()], Act::Auto);
            store.approve(at(1), 1, Change::default(), meta(1)).expect("another rule");
        },
    ];
    for decide in decisions {
        let mut store = store();
        decide(&mut store);
        assert_ne!(store.entry(1).unwrap().state, State::Proposed);
        store.undo(at(2), 1, meta(2)).expect("it is undone");
        assert_eq!(store.entry(1).unwrap().left_alone, Some(at(2 + 7200)));
        store.found(at(3), vec![search()], Act::Auto);
        assert_eq!(store.entry(1).unwrap().state, State::Proposed);
        store.found(at(2 + 7200), vec![search()], Act::Auto);
        assert_ne!(store.entry(1).unwrap().state, State::Proposed);
    }
}

#[test]
fn what_was_undone_while_the_clock_was_wrong_is_not_left_alone_for_ever() {
    let mut store = store();
    store.found(at(0), vec![search()], Act::Propose);
    store.reject(at(1), 1, meta(1)).expect("it is rejected");
    store.undo(at(1), 1, meta(1)).expect("it is undone");
    let years_ago = at(-20 * 366 * 86_400);
    store.began_by(years_ago);
    let most = years_ago + jiff::SignedDuration::from_hours(720);
    assert_eq!(store.entry(1).unwrap().left_alone, Some(most));
}

#[test]
fn what_stands_in_the_file_is_nobodys_decision() {
    let mut store = store();
    let limits = RuleLimits::proposed(&search());
    let said = FileRule { pattern: "/export".into(), why: "so".into(), limits };
    store.file_says(at(0), &[said]).expect("a rule");
    assert!(!store.was_decided() && store.in_force().len() == 1);
    store.reject(at(1), 1, meta(1)).expect("it is left alone");
    assert!(store.was_decided());
    store.undo(at(2), 1, meta(1)).expect("it is undone");
    assert!(store.was_decided(), "that is a decision too");
    assert!(RuleStore::read(&store.text()).expect("it is read").was_decided());
}

#[test]
fn what_is_left_alone_is_not_forgotten_before() {
    let provisional = || vec![Elephant { provisional: true, ..search() }];
    // The three entries come from a provisional finding, an operator's request by name, and one
    // certain finding. Without an undone decision, each of them is forgotten sooner.
    let begins: [fn(&mut RuleStore, Vec<Elephant>); 3] = [
        |store, provisional| drop(store.found(at(0), provisional, Act::Propose)),
        |store, _| drop(store.ask(at(0), search(), meta(1)).expect("a route")),
        |store, _| drop(store.found(at(0), vec![search()], Act::Propose)),
    ];
    for begin in begins {
        let mut store = RuleStore::default();
        begin(&mut store, provisional());
        let gone = store.clone();
        store.reject(at(1), 1, meta(1)).expect("it is rejected");
        store.undo(at(2), 1, meta(24 * 30)).expect("it is undone");
        let end = 2 + 30 * 86_400;
        for mut store in [gone, store] {
            let stays = store.was_decided();
            store.found(at(10), Vec::new(), Act::Auto);
            store.tick(at(end - 10), nothing);
            assert_eq!(store.entry(1).is_ok(), stays);
            store.found(at(end - 5), vec![search()], Act::Auto);
            assert_eq!(store.in_force().is_empty(), stays);
        }
    }
}

#[test]
fn of_a_book_without_the_mark_it_is_told_by_what_is_left_alone() {
    let mut store = store();
    store.reject(at(1), 1, meta(1)).expect("it is rejected");
    store.undo(at(2), 1, meta(1)).expect("it is undone");
    let old = store.text().replace("\"decided\": true", "\"decided\": false");
    assert_ne!(old, store.text());
    assert!(RuleStore::read(&old).expect("it is read").was_decided());
}

#[test]
fn a_full_book_makes_room_by_what_nothing_was_said_of() {
    let mut store = store();
    store.reject(at(1), 1, meta(1)).expect("it is rejected");
    store.undo(at(2), 1, meta(24)).expect("it is undone");
    store.found(at(3), (0..MOST_ENTRIES + 10).map(other).collect(), Act::Propose);
    assert_eq!(store.entries().len(), MOST_ENTRIES);
    assert!(store.entry(1).is_ok(), "the oldest, which is left alone");
}
