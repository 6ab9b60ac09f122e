//! Tests of decisions that were made at another gateway of a fleet.

use bywash_control::{Act, Change, Gauge, Note, Refused, RuleStore, State, Subject, What};

use super::{at, briefly, meta, nothing, search, store};

/// Returns a store and the note of an operator's approval in it.
fn approved() -> (RuleStore, Note) {
    let mut maker = store();
    let note = maker.approve(at(10), 1, Change::default(), meta(1)).expect("an approval");
    (maker, note)
}

#[test]
fn a_rule_of_another_gateway_is_in_force_until_the_same_time() {
    let (maker, note) = approved();
    let mut follower = RuleStore::default();
    assert_eq!(follower.follow(at(12), &note), Ok(Some(1)));
    let (is, wanted) = (&follower.in_force()[0], &maker.in_force()[0]);
    assert_eq!((&is.pattern, &is.rule), (&wanted.pattern, &wanted.rule));
    assert_eq!(follower.entries()[0].ends(), note.until);
    assert!(follower.was_decided());
    let notes = follower.tick(note.until.unwrap(), nothing);
    assert_eq!(notes[0].what, What::Ended);
    assert!(follower.in_force().is_empty());
}

#[test]
fn what_another_gateway_undid_or_rejected_is_left_alone() {
    let (mut maker, note) = approved();
    let mut follower = store();
    follower.follow(at(12), &note).unwrap();
    let undone = maker.undo(at(20), 1, meta(2)).unwrap();
    follower.follow(at(21), &undone).unwrap();
    assert!(follower.in_force().is_empty());
    assert_eq!(follower.entries()[0].left_alone, undone.until);
    follower.found(at(30), vec![search()], Act::Auto);
    assert!(follower.in_force().is_empty(), "an automatic rule against an operator's decision");
    let rejected = maker.reject(at(40), 1, meta(3)).unwrap();
    follower.follow(at(41), &rejected).unwrap();
    assert!(
        matches!(&follower.entries()[0].state, State::Rejected { until, .. } if Some(*until) == rejected.until)
    );
}

#[test]
fn a_trial_of_another_gateway_is_measured_here() {
    let mut maker = store();
    let note = maker.try_out(at(10), 1, Change::default(), briefly(), None).unwrap();
    let mut follower = store();
    follower.follow(at(11), &note).unwrap();
    let during = |follower: &RuleStore| follower.entries()[0].trial.as_ref().unwrap().during;
    assert_eq!((follower.in_force().len(), during(&follower)), (1, None));
    let gauge = Gauge { seconds: 600.0, ..Gauge::default() };
    follower.tick(note.until.unwrap(), |_, _, _| gauge);
    assert!(follower.in_force().is_empty());
    assert_eq!(during(&follower), Some(gauge));
    let long = Note { until: Some(at(10 + 3_600)), ..note };
    assert_eq!(follower.follow(at(12), &long), Err(Refused::Trial));
}

#[test]
fn a_decision_without_effect_adds_no_elephant() {
    let (mut maker, note) = approved();
    let undone = maker.undo(at(20), 1, meta(2)).unwrap();
    let mut follower = RuleStore::default();
    assert_eq!(follower.follow(at(80_000), &note), Ok(None));
    assert_eq!(follower.follow(at(80_000), &undone), Ok(None));
    assert!(follower.entries().is_empty());
    assert!(!follower.lacks(at(80_000), &note));
    assert!(follower.lacks(at(30), &note));
}

#[test]
fn a_decision_from_a_clock_ahead_lasts_no_longer_than_it_was_made_for() {
    let (_, note) = approved();
    let mut follower = RuleStore::default();
    follower.follow(at(-3_000), &note).unwrap();
    assert_eq!(follower.entries()[0].ends(), Some(at(-3_000 + 3_600)));
}

#[test]
fn a_decision_that_has_ended_ends_the_earlier_one() {
    let (_, note) = approved();
    let mut follower = RuleStore::default();
    follower.follow(at(11), &note).unwrap();
    let late = Note { at: at(100), until: Some(at(200)), ..note };
    follower.follow(at(300), &late).unwrap();
    assert!(follower.in_force().is_empty());
}

#[test]
fn impossible_decisions_are_refused_and_change_nothing() {
    let (_, note) = approved();
    let of = |pattern: &str| Subject::Elephant { number: 1, pattern: pattern.into() };
    let mut limits = note.limits.unwrap();
    limits.max_concurrency = 0;
    let impossible = [
        Note { subject: of("no pattern"), ..note.clone() },
        Note { by: " ".into(), ..note.clone() },
        Note { why: "x".repeat(201), ..note.clone() },
        Note { until: Some(at(40 * 86_400)), ..note.clone() },
        Note { limits: Some(limits), ..note.clone() },
    ];
    for one in impossible {
        let mut follower = RuleStore::default();
        let refused = follower.follow(at(12), &one);
        assert!(refused.is_err(), "{one:?}");
        assert!(follower.in_force().is_empty() && !follower.was_decided());
    }
    let mut follower = RuleStore::default();
    let file = bywash_control::FileRule {
        pattern: "/search?q".into(),
        limits: note.limits.unwrap(),
        why: "always".into(),
    };
    follower.file_says(at(0), &[file]).unwrap();
    assert_eq!(follower.follow(at(12), &note), Err(Refused::InFile));
}
