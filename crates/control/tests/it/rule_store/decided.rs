//! Tests of operators' decisions.

use bywash_control::{
    Act, Change, DecisionMeta, DecisionMetaError, Elephant, FileRule, Limit, MOST_ENTRIES,
    MOST_RULES, Refused, RuleLimits, RuleStore, State, What,
};
use bywash_units::TimeSpan;

use super::{at, briefly, meta, nothing, other, search, store};

#[test]
fn an_approved_rule_holds_until_its_time_is_over() {
    let mut store = store();
    let note = store.approve(at(1), 1, Change::default(), meta(1)).unwrap();
    assert_eq!((note.what, note.until), (What::Approved, Some(at(3601))));
    let [rule] = &store.in_force()[..] else { panic!("one rule holds") };
    assert_eq!((rule.id.0, rule.pattern.as_str(), rule.rule.max_concurrency), (1, "/search?q", 2));
    assert_eq!(store.tick(at(3600), nothing), []);
    let notes = store.tick(at(3601), nothing);
    assert_eq!(notes.iter().map(|note| note.what).collect::<Vec<_>>(), [What::Ended]);
    assert_eq!(store.in_force(), []);
}

#[test]
fn a_rule_may_be_changed_and_undone_and_keeps_its_number() {
    let mut store = store();
    store.approve(at(1), 1, Change::default(), meta(1)).unwrap();
    let change = Change { rate: Some(Limit::At(5.0)), wait_ms: Some(2500), ..Change::default() };
    store.approve(at(2), 1, change, meta(2)).unwrap();
    let again = Change { max_concurrency: Some(1), ..Change::default() };
    store.approve(at(3), 1, again, meta(3)).unwrap();
    let [rule] = &store.in_force()[..] else { panic!("one rule holds") };
    let (rate, wait) = (rule.rule.rate.map(bywash_units::Rate::get), rule.rule.wait);
    assert_eq!(
        (rule.rule.max_concurrency, rate, wait),
        (1, Some(5.0), TimeSpan::from_millis(2500))
    );
    let note = store.undo(at(4), 1, meta(1)).unwrap();
    assert_eq!(note.what, What::Undone);
    assert_eq!(store.in_force(), []);
    assert_eq!(store.undo(at(5), 1, meta(1)), Err(Refused::Nothing(1)));
}

#[test]
fn who_is_rejected_is_left_alone_also_where_nobody_is_asked() {
    let mut store = store();
    store.reject(at(1), 1, meta(24)).unwrap();
    store.found(at(2), vec![search()], Act::Auto);
    assert_eq!(store.in_force(), []);
    store.tick(at(1 + 24 * 3600), nothing);
    store.found(at(2 + 24 * 3600), vec![search()], Act::Auto);
    assert_eq!(store.in_force().len(), 1);
}

#[test]
fn transactions_are_held_back_by_nobody() {
    let mut store = RuleStore::default();
    store.found(at(0), vec![Elephant { transacts: true, ..search() }], Act::Propose);
    assert_eq!(store.approve(at(1), 1, Change::default(), meta(1)), Err(Refused::Transacts));
    let trial = store.try_out(at(1), 1, Change::default(), briefly(), None);
    assert_eq!(trial, Err(Refused::Transacts));
}

#[test]
fn a_decision_says_who_and_why_and_for_how_long() {
    let mut store = store();
    let mut refused =
        |meta: DecisionMeta| store.approve(at(1), 1, Change::default(), meta).unwrap_err();
    assert_eq!(
        refused(DecisionMeta { by: " ".into(), ..meta(1) }),
        DecisionMetaError::NoAuthor.into()
    );
    assert_eq!(
        refused(DecisionMeta { why: String::new(), ..meta(1) }),
        DecisionMetaError::NoReason.into()
    );
    assert_eq!(
        refused(DecisionMeta { why: "a\nb".into(), ..meta(1) }),
        DecisionMetaError::BadText.into()
    );
    assert_eq!(
        refused(DecisionMeta { by: "x".repeat(201), ..meta(1) }),
        DecisionMetaError::BadText.into()
    );
    assert_eq!(
        refused(DecisionMeta { lasts: TimeSpan::from_secs(9), ..meta(1) }),
        DecisionMetaError::BadDuration.into()
    );
    assert_eq!(refused(meta(721)), DecisionMetaError::BadDuration.into());
    assert_eq!(store.in_force(), []);
}

#[test]
fn grants_that_make_no_sense_are_refused_and_nothing_changes() {
    let mut store = store();
    store.approve(at(1), 1, Change::default(), meta(1)).unwrap();
    let before = store.clone();
    let wrong = [
        Change { max_concurrency: Some(0), ..Change::default() },
        Change { rate: Some(Limit::At(0.0)), ..Change::default() },
        Change { rate: Some(Limit::At(f64::NAN)), ..Change::default() },
        Change { wait_ms: Some(u64::MAX), ..Change::default() },
        Change { bytes: Some(Limit::At(1)), ..Change::default() },
        Change { queue: Some(u32::MAX), ..Change::default() },
    ];
    for change in wrong {
        let refused = store.approve(at(2), 1, change, meta(1));
        assert!(matches!(refused, Err(Refused::RuleLimits(_))), "{change:?}: {refused:?}");
    }
    assert_eq!(store, before);
    assert_eq!(store.approve(at(2), 9, Change::default(), meta(1)), Err(Refused::Unknown(9)));
}

#[test]
fn there_are_no_more_rules_and_entries_than_fit() {
    let mut store = RuleStore::default();
    store.found(at(0), (0..1000).map(other).collect(), Act::Auto);
    assert_eq!((store.entries().len(), store.in_force().len()), (MOST_ENTRIES, MOST_RULES));
    let open = store.entries().iter().find(|entry| entry.state == State::Proposed).unwrap().number;
    assert_eq!(store.approve(at(1), open, Change::default(), meta(1)), Err(Refused::Many));
    let more =
        FileRule { pattern: "/x".into(), limits: RuleLimits::proposed(&search()), why: "y".into() };
    assert_eq!(store.file_says(at(1), &[more]), Err(Refused::Many));
    let ruled = store.in_force()[0].id.0;
    assert!(
        store.approve(at(1), ruled, Change::default(), meta(1)).is_ok(),
        "a rule can be changed"
    );
}

fn granted(store: &RuleStore) -> RuleLimits {
    match &store.entry(1).expect("it is there").state {
        State::Ruled(rule) => rule.limits,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_limit_goes_when_null_is_said_and_stays_when_nothing_is() {
    let mut store = store();
    let change = Change { rate: Some(Limit::At(2.0)), ..Change::default() };
    store.approve(at(1), 1, change, meta(1)).expect("a rule");
    let kept: Change = serde_json::from_str(r#"{"queue": 3}"#).expect("a change");
    store.approve(at(2), 1, kept, meta(1)).expect("another one");
    assert_eq!(granted(&store).rate, Some(2.0));
    let gone: Change = serde_json::from_str(r#"{"rate": null}"#).expect("a change");
    assert_eq!(serde_json::to_string(&gone).expect("it is JSON"), r#"{"rate":null}"#);
    store.approve(at(3), 1, gone, meta(1)).expect("another one");
    assert_eq!((granted(&store).rate, granted(&store).queue), (None, 3));
}
