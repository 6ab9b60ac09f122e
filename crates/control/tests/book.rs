//! What is decided of elephants, and what comes of it.

use bywash_control::{
    Act, Book, Change, Effect, Elephant, Gauge, Grants, Limit, Lot, MOST_ENTRIES, MOST_RULES, Note,
    Origin, Refused, Resource, State, Subject, Timestamp, Unpredicted, What, Word, WordError,
    Written,
};
use bywash_units::Span;

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

/// Fills three fifths of a line of ten megabytes a second; others a tenth.
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

fn word(hours: u64) -> Word {
    let lasts = Span::from_secs(hours * 3600);
    Word { by: "the night shift".into(), why: "the database is full".into(), lasts }
}

fn briefly() -> Word {
    Word { lasts: Span::from_secs(600), ..word(1) }
}

/// A book in which a search was found.
fn book() -> Book {
    let mut book = Book::default();
    let notes = book.found(at(0), vec![search()], Act::Propose);
    assert_eq!(notes.len(), 1, "{notes:?}");
    book
}

fn nothing(_: &bywash_control::Entry, _: Timestamp, _: Timestamp) -> Gauge {
    panic!("no trial is over")
}

#[test]
fn what_was_found_is_proposed_once_and_holds_nobody_back() {
    let mut book = book();
    assert_eq!(book.found(at(30), vec![search()], Act::Propose), []);
    let entry = book.entry(1).unwrap();
    assert_eq!((entry.since, entry.seen, &entry.state), (at(0), at(30), &State::Proposed));
    assert_eq!(book.in_force(), []);
}

#[test]
fn an_approved_rule_holds_until_its_time_is_over() {
    let mut book = book();
    let note = book.approve(at(1), 1, Change::default(), word(1)).unwrap();
    assert_eq!((note.what, note.until), (What::Approved, Some(at(3601))));
    let [rule] = &book.in_force()[..] else { panic!("one rule holds") };
    assert_eq!((rule.id.0, rule.pattern.as_str(), rule.rule.at_once), (1, "/search?q", 2));
    assert_eq!(book.tick(at(3600), nothing), []);
    let notes = book.tick(at(3601), nothing);
    assert_eq!(notes.iter().map(|note| note.what).collect::<Vec<_>>(), [What::Ended]);
    assert_eq!(book.in_force(), []);
}

#[test]
fn a_rule_may_be_changed_and_undone_and_keeps_its_number() {
    let mut book = book();
    book.approve(at(1), 1, Change::default(), word(1)).unwrap();
    let change = Change { rate: Some(Limit::At(5.0)), wait_ms: Some(2500), ..Change::default() };
    book.approve(at(2), 1, change, word(2)).unwrap();
    let again = Change { at_once: Some(1), ..Change::default() };
    book.approve(at(3), 1, again, word(3)).unwrap();
    let [rule] = &book.in_force()[..] else { panic!("one rule holds") };
    let (rate, wait) = (rule.rule.rate.map(bywash_units::Rate::get), rule.rule.wait);
    assert_eq!((rule.rule.at_once, rate, wait), (1, Some(5.0), Span::from_millis(2500)));
    let note = book.undo(at(4), 1, word(1)).unwrap();
    assert_eq!(note.what, What::Undone);
    assert_eq!(book.in_force(), []);
    assert_eq!(book.undo(at(5), 1, word(1)), Err(Refused::Nothing(1)));
}

#[test]
fn who_is_rejected_is_left_alone_also_where_nobody_is_asked() {
    let mut book = book();
    book.reject(at(1), 1, word(24)).unwrap();
    book.found(at(2), vec![search()], Act::Auto);
    assert_eq!(book.in_force(), []);
    book.tick(at(1 + 24 * 3600), nothing);
    book.found(at(2 + 24 * 3600), vec![search()], Act::Auto);
    assert_eq!(book.in_force().len(), 1);
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
        let mut book = Book::default();
        book.found(at(0), vec![elephant.clone()], Act::Auto);
        assert_eq!(book.in_force(), [], "{elephant:?}");
    }
    let mut book = Book::default();
    let notes = book.found(at(0), vec![search()], Act::Auto);
    assert_eq!(
        notes.iter().map(|note| note.what).collect::<Vec<_>>(),
        [What::Proposed, What::Approved]
    );
    let State::Ruled(rule) = &book.entry(1).unwrap().state else { panic!("it is held back") };
    assert_eq!((rule.origin, rule.until), (Origin::Auto, Some(at(3600))));
}

#[test]
fn what_was_provisional_and_is_not_found_again_was_nothing() {
    let mut book = Book::default();
    let early = Elephant { provisional: true, ..search() };
    assert_eq!(book.found(at(0), vec![early.clone(), other(1)], Act::Propose).len(), 1);
    assert_eq!(book.found(at(10), vec![early], Act::Propose), []);
    assert_eq!(book.entries().len(), 2, "what was sure stays for a while");
    let notes = book.found(at(20), vec![search()], Act::Propose);
    let number = book.entries().iter().find(|entry| entry.pattern == "/search?q").unwrap().number;
    assert_eq!(
        notes.iter().map(|note| note.subject.clone()).collect::<Vec<_>>(),
        [Subject::Elephant { number, pattern: "/search?q".into() }],
        "it is sure now"
    );
    let again = Elephant { provisional: true, ..other(2) };
    book.found(at(30), vec![again], Act::Propose);
    book.approve(at(31), 3, Change::default(), word(1)).unwrap();
    book.found(at(40), Vec::new(), Act::Propose);
    assert_eq!(book.entries().len(), 3, "a decision keeps it");
}

#[test]
fn transactions_are_held_back_by_nobody() {
    let mut book = Book::default();
    book.found(at(0), vec![Elephant { transacts: true, ..search() }], Act::Propose);
    assert_eq!(book.approve(at(1), 1, Change::default(), word(1)), Err(Refused::Transacts));
    let trial = book.try_out(at(1), 1, Change::default(), briefly(), None);
    assert_eq!(trial, Err(Refused::Transacts));
}

#[test]
fn a_decision_says_who_and_why_and_for_how_long() {
    let mut book = book();
    let mut refused = |word: Word| book.approve(at(1), 1, Change::default(), word).unwrap_err();
    assert_eq!(refused(Word { by: " ".into(), ..word(1) }), WordError::Nobody.into());
    assert_eq!(refused(Word { why: String::new(), ..word(1) }), WordError::NoReason.into());
    assert_eq!(refused(Word { why: "a\nb".into(), ..word(1) }), WordError::Unreadable.into());
    assert_eq!(refused(Word { by: "x".repeat(201), ..word(1) }), WordError::Unreadable.into());
    assert_eq!(refused(Word { lasts: Span::from_secs(9), ..word(1) }), WordError::Lasts.into());
    assert_eq!(refused(word(721)), WordError::Lasts.into());
    assert_eq!(book.in_force(), []);
}

#[test]
fn grants_that_make_no_sense_are_refused_and_nothing_changes() {
    let mut book = book();
    book.approve(at(1), 1, Change::default(), word(1)).unwrap();
    let before = book.clone();
    let wrong = [
        Change { at_once: Some(0), ..Change::default() },
        Change { rate: Some(Limit::At(0.0)), ..Change::default() },
        Change { rate: Some(Limit::At(f64::NAN)), ..Change::default() },
        Change { wait_ms: Some(u64::MAX), ..Change::default() },
        Change { bytes: Some(Limit::At(1)), ..Change::default() },
        Change { queue: Some(u32::MAX), ..Change::default() },
    ];
    for change in wrong {
        let refused = book.approve(at(2), 1, change, word(1));
        assert!(matches!(refused, Err(Refused::Grants(_))), "{change:?}: {refused:?}");
    }
    assert_eq!(book, before);
    assert_eq!(book.approve(at(2), 9, Change::default(), word(1)), Err(Refused::Unknown(9)));
}

#[test]
fn a_trial_is_short_and_says_what_was_predicted_and_what_came() {
    let mut book = book();
    let lot =
        |p99: f64| Lot { answered: 10.0, refused: 0.0, p50: Some(p99 / 10.0), p99: Some(p99) };
    let before = Gauge {
        at: Some(at(1)),
        seconds: 60.0,
        used: Some(0.9),
        elephants: lot(9.0),
        ants: lot(8.0),
    };
    let long = book.try_out(at(1), 1, Change::default(), word(1), Some(before));
    assert_eq!(long, Err(Refused::Trial));
    let minute = Word { lasts: Span::from_secs(60), ..word(1) };
    let change = Change { at_once: Some(1), ..Change::default() };
    book.try_out(at(1), 1, change, minute, Some(before)).unwrap();
    let during = Gauge { ants: lot(0.1), ..before };
    let notes = book.tick(at(61), |entry, from, to| {
        assert_eq!((entry.number, from, to), (1, at(1), at(61)));
        during
    });
    assert_eq!(notes.len(), 1);
    let entry = book.entry(1).unwrap();
    let trial = entry.trial.as_ref().unwrap();
    assert_eq!(
        (trial.before, trial.during, &entry.state),
        (before, Some(during), &State::Proposed)
    );
    let effect = trial.predicted.unwrap();
    // 72 % of two processors is theirs; one at once can use half.
    assert!(
        (effect.elephants_now - 0.72).abs() < 1e-9 && (effect.elephants_most - 0.5).abs() < 1e-9
    );
    assert!((effect.held_back - 14.4 * (1.0 - 0.5 / 0.72)).abs() < 1e-9, "{effect:?}");
}

#[test]
fn what_was_written_reads_back_and_goes_on() {
    let mut book = book();
    let change = Change {
        rate: Some(Limit::At(2.5)),
        bytes: Some(Limit::At(1_000_000)),
        ..Change::default()
    };
    book.approve(at(1), 1, change, word(1)).unwrap();
    book.found(at(2), vec![other(1)], Act::Propose);
    book.reject(at(3), 2, word(2)).unwrap();
    let mut read = Book::read(&book.text()).unwrap();
    assert_eq!(read, book);
    read.found(at(4), vec![other(2)], Act::Propose);
    assert_eq!(read.entries().last().unwrap().number, 3, "a number is given once");
    for wrong in ["", "{", "[]", "{\"entries\": 1, \"next\": 2}", "{\"entries\": [], \"next\": -1}"]
    {
        assert!(Book::read(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn a_book_written_by_hand_holds_no_rule_that_nobody_could_have_approved() {
    let mut book = book();
    book.approve(at(1), 1, Change::default(), word(1)).unwrap();
    let by_hand = book.text().replace("\"at_once\": 2", "\"at_once\": 0");
    assert_ne!(by_hand, book.text());
    assert_eq!(Book::read(&by_hand).unwrap().in_force(), []);
}

#[test]
fn rules_of_the_file_hold_as_long_as_they_stand_there() {
    let mut book = book();
    book.approve(at(1), 1, Change::default(), word(1)).unwrap();
    let grants = Grants { at_once: 1, ..Grants::proposed(&search()) };
    let rule = |pattern: &str| Written { pattern: pattern.into(), grants, why: "too dear".into() };
    let said = [rule("/search?q"), rule("/export")];
    assert_eq!(book.file_says(at(2), &said).unwrap().len(), 2);
    assert_eq!(book.file_says(at(3), &said).unwrap(), [], "nothing is new");
    assert_eq!(book.undo(at(4), 1, word(1)), Err(Refused::InFile));
    assert_eq!(book.approve(at(4), 1, Change::default(), word(1)), Err(Refused::InFile));
    assert_eq!(book.tick(at(1_000_000), nothing), []);
    let what = |notes: Vec<Note>| notes.iter().map(|note| note.what).collect::<Vec<_>>();
    assert_eq!(what(book.file_says(at(5), &said[..1]).unwrap()), [What::Undone]);
    assert_eq!(book.in_force().len(), 1);
}

#[test]
fn there_are_no_more_rules_and_entries_than_fit() {
    let mut book = Book::default();
    book.found(at(0), (0..1000).map(other).collect(), Act::Auto);
    assert_eq!((book.entries().len(), book.in_force().len()), (MOST_ENTRIES, MOST_RULES));
    let open = book.entries().iter().find(|entry| entry.state == State::Proposed).unwrap().number;
    assert_eq!(book.approve(at(1), open, Change::default(), word(1)), Err(Refused::Many));
    let more =
        Written { pattern: "/x".into(), grants: Grants::proposed(&search()), why: "y".into() };
    assert_eq!(book.file_says(at(1), &[more]), Err(Refused::Many));
    let ruled = book.in_force()[0].id.0;
    assert!(
        book.approve(at(1), ruled, Change::default(), word(1)).is_ok(),
        "a rule can be changed"
    );
}

#[test]
fn what_is_not_found_any_more_and_not_decided_is_forgotten_after_a_week() {
    let mut book = book();
    book.tick(at(7 * 86_400 - 1), nothing);
    assert_eq!(book.entries().len(), 1);
    book.tick(at(7 * 86_400), nothing);
    assert_eq!(book.entries().len(), 0);
}

#[test]
fn of_a_page_that_fills_two_resources_the_fuller_one_is_shown() {
    let mut book = Book::default();
    let disk = Elephant { resource: "disk".into(), rate: 5.0, ..search() };
    book.found(at(0), vec![search(), disk.clone()], Act::Propose);
    assert_eq!(book.entries()[0].found.as_ref().unwrap().resource, "db");
    book.found(at(1), vec![disk.clone(), search()], Act::Propose);
    assert_eq!(book.entries()[0].found.as_ref().unwrap().resource, "db");
    let fuller = Elephant { provisional: true, ..search() };
    for at_once in [vec![fuller.clone(), disk.clone()], vec![disk, fuller]] {
        let notes = book.found(at(2), at_once, Act::Propose);
        assert_eq!(book.entries()[0].found.as_ref().unwrap().resource, "disk", "that is sure");
        assert_eq!(notes, [], "it was proposed before");
    }
    // Who waits for a disk holds slots.
    let disk = Elephant { resource: "disk".into(), provisional: true, rate: 5.0, ..search() };
    let slots = Elephant { consists_of: Resource::Slots, resource: "slots".into(), ..search() };
    book.found(at(3), vec![slots.clone(), disk], Act::Propose);
    assert_eq!(book.entries()[0].found.as_ref().unwrap().resource, "disk");
    let notes = book.found(at(4), vec![slots], Act::Propose);
    assert_eq!(book.entries()[0].found.as_ref().unwrap().resource, "slots");
    assert_eq!(notes, [], "it is said once");
}

#[test]
fn what_was_held_back_without_asking_and_is_undone_is_left_alone_for_as_long_as_was_said() {
    let mut book = Book::default();
    book.found(at(0), vec![search()], Act::Auto);
    assert_eq!(book.in_force().len(), 1);
    book.undo(at(10), 1, word(2)).unwrap();
    book.found(at(20), vec![search()], Act::Auto);
    assert_eq!(book.in_force(), []);
    book.tick(at(10 + 2 * 3600), nothing);
    book.found(at(20 + 2 * 3600), vec![search()], Act::Auto);
    assert_eq!(book.in_force().len(), 1);
}

#[test]
fn what_is_exported_can_stand_in_the_file() {
    let mut book = book();
    let change = Change { rate: Some(Limit::At(2.0)), ..Change::default() };
    let why = Word { why: "say \"no\" \\ ok".into(), ..word(1) };
    book.approve(at(1), 1, change, why).unwrap();
    let text = book.exported();
    let file: toml::Table = text.parse().unwrap_or_else(|error| panic!("{error}: {text}"));
    let rule = &file["throttle"]["elephant-1"];
    assert_eq!(rule["match"].as_str(), Some("/search?q"));
    assert_eq!(rule["why"].as_str(), Some("say \"no\" \\ ok"));
    assert_eq!((rule["at_once"].as_integer(), rule["rate"].as_float()), (Some(2), Some(2.0)));
    assert_eq!(rule["wait"].as_str(), Some("10s"));
}

#[test]
fn what_is_proposed_bounds_the_resource_that_is_filled() {
    let of = |elephant: &Elephant| {
        let grants = Grants::proposed(elephant);
        (grants.at_once, grants.bytes)
    };
    assert_eq!(of(&search()), (2, None));
    // Others have a tenth, a fifth stays free.
    assert_eq!(of(&download()), (8, Some(7_000_000)));
    let full = Elephant { used: 1.0, share: 0.1, ..download() };
    assert_eq!(of(&full), (8, Some(1_000_000)), "a tenth is theirs in any case");
    let slots = Elephant { consists_of: Resource::Slots, capacity: 64.0, ..search() };
    assert_eq!(of(&slots), (12, None));
    for capacity in [1.0, 2e8] {
        let disk = Elephant { consists_of: Resource::Other, capacity, ..search() };
        assert_eq!(of(&disk), (1, None), "bytes a second are no number of processors");
    }
}

#[test]
fn what_a_rule_does_not_bound_is_not_predicted() {
    let usual = |elephant: &Elephant| Effect::of(elephant, &Grants::proposed(elephant));
    let bytes = usual(&download()).unwrap();
    assert!((bytes.elephants_now - 0.6).abs() < 1e-9, "{bytes:?}");
    assert!((bytes.elephants_most - 0.7).abs() < 1e-9 && bytes.held_back < 1e-9, "{bytes:?}");
    let at_once = Grants { bytes: None, ..Grants::proposed(&download()) };
    assert_eq!(Effect::of(&download(), &at_once), Err(Unpredicted::NotBytes));
    let rate = Effect::of(&download(), &Grants { rate: Some(3.0), ..at_once }).unwrap();
    assert!((rate.elephants_most - 0.3).abs() < 1e-9 && (rate.held_back - 3.0).abs() < 1e-9);
    let slots = Elephant { consists_of: Resource::Slots, capacity: 10.0, cost: 1.0, ..search() };
    assert!((usual(&slots).unwrap().elephants_most - 0.2).abs() < 1e-9);
    let disk = Elephant { consists_of: Resource::Other, ..search() };
    assert_eq!(usual(&disk), Err(Unpredicted::Unbounded));
    let mut book = Book::default();
    book.found(at(0), vec![disk], Act::Propose);
    let minute = Word { lasts: Span::from_secs(60), ..word(1) };
    book.try_out(at(1), 1, Change::default(), minute, None).unwrap();
    assert_eq!(book.entry(1).unwrap().trial.as_ref().unwrap().predicted, None);
}

#[test]
fn a_limit_goes_when_null_is_said_and_stays_when_nothing_is() {
    let mut book = book();
    let change = Change { rate: Some(Limit::At(2.0)), ..Change::default() };
    book.approve(at(1), 1, change, word(1)).expect("a rule");
    let kept: Change = serde_json::from_str(r#"{"queue": 3}"#).expect("a change");
    book.approve(at(2), 1, kept, word(1)).expect("another one");
    assert_eq!(granted(&book).rate, Some(2.0));
    let gone: Change = serde_json::from_str(r#"{"rate": null}"#).expect("a change");
    assert_eq!(serde_json::to_string(&gone).expect("it is JSON"), r#"{"rate":null}"#);
    book.approve(at(3), 1, gone, word(1)).expect("another one");
    assert_eq!((granted(&book).rate, granted(&book).queue), (None, 3));
}

#[test]
fn what_is_exported_of_a_name_with_a_control_character_is_toml() {
    let mut book = Book::default();
    let pattern = "/a\u{7f}\u{1}\"\\b";
    book.found(at(0), vec![Elephant { pattern: pattern.into(), ..search() }], Act::Propose);
    book.approve(at(1), 1, Change::default(), word(1)).expect("a rule");
    let text = book.exported();
    let read: toml::Table = text.parse().unwrap_or_else(|why| panic!("{why}: {text:?}"));
    let rules = read["throttle"].as_table().expect("rules by name");
    assert!(rules.values().all(|rule| rule["match"].as_str() == Some(pattern)), "{text}");
}

fn granted(book: &Book) -> Grants {
    match &book.entry(1).expect("it is there").state {
        State::Ruled(rule) => rule.grants,
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_nobody_has_found_can_be_asked_for_and_is_forgotten_if_nothing_is_decided() {
    let mut book = book();
    let little = Elephant { share: 0.01, resource: "slots".into(), ..other(7) };
    let (number, note) = book.ask(at(0), little.clone(), word(1)).expect("it is there now");
    let note = note.expect("it is new");
    assert_eq!((number, note.what, note.by.as_str()), (2, What::Asked, "the night shift"));
    assert_eq!(book.asked().collect::<Vec<_>>(), ["/other/7"]);
    let again = book.ask(at(1), little.clone(), word(1)).expect("it is there");
    assert!(again == (2, None) && book.entries().len() == 2, "once");
    assert_eq!(book.ask(at(1), search(), word(1)), Ok((1, None)), "as what was found has a number");
    book.found(at(60), vec![search()], Act::Auto);
    assert_eq!(book.entry(2).expect("it stays").state, State::Proposed, "nobody decided");
    book.uses(vec![Elephant { rate: 3.0, ..little }, Elephant { rate: 3.0, ..search() }]);
    let rate = |number| book.entry(number).unwrap().found.as_ref().unwrap().rate;
    assert!((rate(2) - 3.0).abs() < 1e-9 && (rate(1) - 14.4).abs() < 1e-9, "of what was asked for");
    let gauge = |_: &_, _, _| Gauge::default();
    book.approve(at(3000), 2, Change::default(), word(1)).expect("a rule");
    book.tick(at(3601), gauge);
    assert!(book.in_force().iter().any(|rule| rule.id.0 == 2), "what is decided holds");
    book.undo(at(3700), 2, word(1)).expect("it is undone");
    book.tick(at(7200), gauge);
    assert!(book.entry(2).is_ok(), "it can be looked at after that");
    book.tick(at(7301), gauge);
    assert_eq!(book.entry(2), Err(Refused::Unknown(2)));
    assert_eq!(book.entry(1).map(|one| one.asked), Ok(false));
}

#[test]
fn what_earns_and_what_there_is_no_place_for_cannot_be_asked_for() {
    let mut book = book();
    let earns = Elephant { transacts: true, ..other(1) };
    assert_eq!(book.ask(at(0), earns, word(1)), Err(Refused::Transacts));
    let unsaid = Word { why: String::new(), ..word(1) };
    assert!(matches!(book.ask(at(0), other(1), unsaid), Err(Refused::Word(_))));
    book.found(at(0), (0..MOST_ENTRIES).map(other).collect(), Act::Propose);
    for number in book.entries().iter().map(|one| one.number).collect::<Vec<_>>() {
        book.reject(at(1), number, word(1)).expect("it is left alone");
    }
    assert_eq!(book.ask(at(2), other(1000), word(1)), Err(Refused::Full));
}

#[test]
fn what_is_ruled_is_measured_by_the_resource_that_it_was_ruled_for() {
    let mut book = book();
    book.approve(at(1), 1, Change::default(), word(1)).expect("a rule");
    let (resource, consists_of) = ("line".into(), Resource::Bytes);
    let line = Elephant { resource, consists_of, ..search() };
    let of = |book: &Book| book.entry(1).unwrap().found.as_ref().unwrap().resource.clone();
    book.found(at(2), vec![line.clone()], Act::Propose);
    assert_eq!(of(&book), "db");
    book.undo(at(3), 1, word(1)).expect("it is undone");
    book.found(at(4), vec![line], Act::Propose);
    assert_eq!(of(&book), "line", "of what is proposed, what it fills now");
}

fn before(book: &Book) -> Option<f64> {
    match &book.entry(1).expect("it is there").state {
        State::Ruled(rule) => rule.before.as_ref().map(|before| before.seconds),
        other => panic!("{other:?}"),
    }
}

#[test]
fn before_a_rule_is_a_minute_without_one() {
    let gauge = |seconds| Gauge { seconds, ..Gauge::default() };
    let usual = Change::default;
    let mut book = book();
    let short = Word { lasts: Span::from_secs(60), ..word(1) };
    book.try_out(at(0), 1, usual(), short, Some(gauge(1.0))).expect("a trial");
    assert_eq!(before(&book), Some(1.0));
    // Approved while it is tried: the last minute was the trial's.
    book.approve(at(30), 1, usual(), word(1)).expect("a rule");
    book.was_before(at(30), 1, Some(gauge(2.0)));
    assert_eq!(before(&book), Some(1.0));
    book.undo(at(40), 1, word(1)).expect("it is undone");
    book.approve(at(60), 1, usual(), word(1)).expect("a rule");
    book.was_before(at(60), 1, Some(gauge(3.0)));
    assert_eq!(before(&book), Some(1.0), "half of the last minute was the other's");
    book.undo(at(70), 1, word(1)).expect("it is undone");
    book.approve(at(140), 1, usual(), word(1)).expect("a rule");
    book.was_before(at(140), 1, Some(gauge(4.0)));
    assert_eq!(before(&book), Some(4.0));
    let kept = Book::read(&book.text()).expect("as it was written");
    assert_eq!(kept, book);
    // An hour later that says nothing any more, and what was not measured stays unknown.
    book.approve(at(4000), 1, usual(), word(1)).expect("another rule");
    book.was_before(at(4000), 1, Some(gauge(5.0)));
    assert_eq!(before(&book), None);
    book.approve(at(4100), 1, usual(), word(1)).expect("another rule");
    book.was_before(at(4100), 1, Some(gauge(6.0)));
    assert_eq!(before(&book), None, "that minute was under a rule");
    book.undo(at(4110), 1, word(1)).expect("it is undone");
    book.approve(at(4200), 1, usual(), word(1)).expect("a rule");
    book.was_before(at(4200), 1, None);
    assert_eq!(before(&book), None, "nobody measured it");
}

#[test]
fn what_an_operator_has_undone_is_not_held_back_again_without_asking() {
    let mut book = Book::default();
    book.found(at(0), vec![search()], Act::Auto);
    book.approve(at(10), 1, Change::default(), word(1)).expect("another rule");
    book.undo(at(20), 1, word(2)).expect("it is undone");
    book.found(at(30), vec![search()], Act::Auto);
    assert_eq!(book.entry(1).unwrap().state, State::Proposed);
    book.found(at(20 + 7200), vec![search()], Act::Auto);
    assert_eq!(book.in_force().len(), 1, "for two hours, as was said");
}

#[test]
fn what_was_found_long_ago_is_told_anew_when_it_is_asked_for() {
    let mut book = book();
    let now = Elephant { rate: 1.0, resource: "slots".into(), ..search() };
    book.ask(at(30), now.clone(), word(1)).expect("it is there");
    let rate = |book: &Book| book.entry(1).unwrap().found.as_ref().unwrap().rate;
    assert!((rate(&book) - 14.4).abs() < 1e-9, "it was found just now");
    book.ask(at(86_400), now, word(1)).expect("it is there");
    assert!((rate(&book) - 1.0).abs() < 1e-9 && book.entry(1).unwrap().asked);
}

#[test]
fn what_holds_back_by_itself_again_is_not_held_against_itself() {
    let mut book = Book::default();
    book.found(at(0), vec![search()], Act::Auto);
    book.was_before(at(0), 1, Some(Gauge { seconds: 5.0, ..Gauge::default() }));
    assert_eq!(before(&book), Some(5.0));
    book.tick(at(3600), |_, _, _| Gauge::default());
    book.found(at(3605), vec![search()], Act::Auto);
    book.was_before(at(3605), 1, Some(Gauge { seconds: 6.0, ..Gauge::default() }));
    assert_eq!(before(&book), None, "that is too long ago, and the last minute was the other's");
}

#[test]
fn what_was_asked_for_stays_though_it_was_found_for_a_moment() {
    let mut book = Book::default();
    book.ask(at(0), search(), word(1)).expect("it is there");
    book.found(at(10), vec![Elephant { provisional: true, ..search() }], Act::Propose);
    book.found(at(20), Vec::new(), Act::Propose);
    assert!(book.entry(1).is_ok_and(|entry| entry.asked));
    book.ask(at(3590), search(), word(1)).expect("asked again");
    book.tick(at(3700), |_, _, _| Gauge::default());
    assert!(book.entry(1).is_ok(), "an hour from then");
    book.found(at(3710), vec![search()], Act::Propose);
    assert!(book.entry(1).is_ok_and(|entry| !entry.asked), "it is one by itself");
}

#[test]
fn of_a_rule_of_the_file_it_is_told_what_these_requests_fill_most() {
    let mut book = Book::default();
    let grants = Grants::proposed(&search());
    let said = Written { pattern: search().pattern, why: "so".into(), grants };
    book.file_says(at(0), &[said]).expect("a rule");
    let slots = Elephant { resource: "slots".into(), consists_of: Resource::Slots, ..search() };
    book.found(at(1), vec![slots.clone()], Act::Propose);
    book.found(at(2), vec![slots, search()], Act::Propose);
    assert_eq!(book.entry(1).unwrap().found.as_ref().unwrap().resource, "db");
}

#[test]
fn what_stands_in_the_file_is_nobodys_decision() {
    let mut book = book();
    let grants = Grants::proposed(&search());
    let said = Written { pattern: "/export".into(), why: "so".into(), grants };
    book.file_says(at(0), &[said]).expect("a rule");
    assert!(!book.was_decided() && book.in_force().len() == 1);
    book.reject(at(1), 1, word(1)).expect("it is left alone");
    assert!(book.was_decided());
    book.undo(at(2), 1, word(1)).expect("it is undone");
    assert!(book.was_decided(), "that is a decision too");
    assert!(Book::read(&book.text()).expect("it is read").was_decided());
}

#[test]
fn what_is_undone_is_left_alone_for_as_long_as_was_said_be_it_a_rule_or_a_rejection() {
    let is_proposed = |book: &Book| book.entry(1).unwrap().state == State::Proposed;
    for reject in [false, true] {
        let mut book = book();
        if reject {
            book.reject(at(1), 1, word(1)).expect("it is rejected");
        } else {
            book.approve(at(1), 1, Change::default(), word(1)).expect("it is ruled");
        }
        let note = book.undo(at(2), 1, word(1)).expect("it is undone");
        assert_eq!(note.until, Some(at(2 + 3600)));
        book.found(at(3), vec![search()], Act::Auto);
        assert!(is_proposed(&book));
        book.found(at(2 + 3600), vec![search()], Act::Auto);
        assert!(!is_proposed(&book));
    }
}

#[test]
fn what_was_undone_while_the_clock_was_wrong_is_not_left_alone_for_ever() {
    let mut book = book();
    book.found(at(0), vec![search()], Act::Propose);
    book.reject(at(1), 1, word(1)).expect("it is rejected");
    book.undo(at(1), 1, word(1)).expect("it is undone");
    let years_ago = at(-20 * 366 * 86_400);
    book.began_by(years_ago);
    let most = years_ago + jiff::SignedDuration::from_hours(720);
    assert_eq!(book.entry(1).unwrap().left_alone, Some(most));
}

#[test]
fn a_long_trial_is_not_measured_against_a_time_with_another_rule() {
    let mut book = book();
    book.found(at(0), vec![search()], Act::Propose);
    book.approve(at(0), 1, Change::default(), word(1)).expect("it is ruled");
    book.undo(at(300), 1, word(1)).expect("it is undone");
    let measured = |seconds| Some(Gauge { seconds, ..Gauge::default() });
    let mut tried = |now, seconds| {
        book.try_out(at(now), 1, Change::default(), briefly(), measured(seconds)).expect("a trial");
        let before = book.entry(1).unwrap().trial.as_ref().unwrap().before;
        book.undo(at(now + 1), 1, word(1)).expect("it is undone");
        before.seconds
    };
    // The rule ended two minutes before.
    assert!(tried(420, 600.0) == 0.0, "half of that time was the rule's");
    assert!(tried(500, 60.0) > 0.0);
}

#[test]
fn what_was_found_long_ago_can_be_asked_for_again_by_somebody_with_a_why() {
    let mut book = book();
    book.found(at(0), vec![search()], Act::Propose);
    book.try_out(at(1), 1, Change::default(), briefly(), None).expect("a trial");
    book.undo(at(2), 1, word(1)).expect("it is undone");
    let (number, note) = book.ask(at(3600), search(), word(1)).expect("there is one");
    assert_eq!((number, note.map(|note| note.what)), (1, Some(What::Asked)));
    book.tick(at(3 * 3600), |_, _, _| Gauge::default());
    assert!(book.entry(1).unwrap().trial.is_some(), "what was tried is not forgotten so soon");
    book.tick(at(8 * 86_400), |_, _, _| Gauge::default());
    assert!(book.entry(1).is_err());
}
