//! Tests of operators' decisions.

use bywash_control::{
    Act, Book, Change, Elephant, Grants, Limit, MOST_ENTRIES, MOST_RULES, Refused, State, What,
    Word, WordError, Written,
};
use bywash_units::Span;

use super::{at, book, briefly, nothing, other, search, word};

#[test]
fn an_approved_rule_holds_until_its_time_is_over() {
    let mut book = book();
    let note = book.approve(at(1), 1, Change::default(), word(1)).unwrap();
    assert_eq!((note.what, note.until), (What::Approved, Some(at(3601))));
    let [rule] = &book.in_force()[..] else { panic!("one rule holds") };
    assert_eq!((rule.id.0, rule.pattern.as_str(), rule.rule.max_concurrency), (1, "/search?q", 2));
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
    let again = Change { max_concurrency: Some(1), ..Change::default() };
    book.approve(at(3), 1, again, word(3)).unwrap();
    let [rule] = &book.in_force()[..] else { panic!("one rule holds") };
    let (rate, wait) = (rule.rule.rate.map(bywash_units::Rate::get), rule.rule.wait);
    assert_eq!((rule.rule.max_concurrency, rate, wait), (1, Some(5.0), Span::from_millis(2500)));
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
        Change { max_concurrency: Some(0), ..Change::default() },
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

fn granted(book: &Book) -> Grants {
    match &book.entry(1).expect("it is there").state {
        State::Ruled(rule) => rule.grants,
        other => panic!("{other:?}"),
    }
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
