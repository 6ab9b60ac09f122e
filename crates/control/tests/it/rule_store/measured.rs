//! Tests of the predicted and the measured effect of a rule.

use bywash_control::{
    Act, Change, DecisionMeta, Effect, Elephant, Gauge, Refused, Resource, ResponseStats,
    RuleLimits, RuleStore, State, Unpredicted,
};
use bywash_units::TimeSpan;

use super::{at, briefly, download, meta, search, store};

#[test]
fn what_is_proposed_bounds_the_resource_that_is_filled() {
    let of = |elephant: &Elephant| {
        let limits = RuleLimits::proposed(elephant);
        (limits.max_concurrency, limits.bytes)
    };
    assert_eq!(of(&search()), (2, None));
    // Other requests use a tenth of the line, and a fifth of the line must stay free.
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
    let usual = |elephant: &Elephant| Effect::of(elephant, &RuleLimits::proposed(elephant));
    let bytes = usual(&download()).unwrap();
    assert!((bytes.elephants_now - 0.6).abs() < 1e-9, "{bytes:?}");
    assert!((bytes.elephants_most - 0.7).abs() < 1e-9 && bytes.held_back < 1e-9, "{bytes:?}");
    let without_bytes = RuleLimits { bytes: None, ..RuleLimits::proposed(&download()) };
    assert_eq!(Effect::of(&download(), &without_bytes), Err(Unpredicted::NotBytes));
    let rate = Effect::of(&download(), &RuleLimits { rate: Some(3.0), ..without_bytes }).unwrap();
    assert!((rate.elephants_most - 0.3).abs() < 1e-9 && (rate.held_back - 3.0).abs() < 1e-9);
    let slots = Elephant { consists_of: Resource::Slots, capacity: 10.0, cost: 1.0, ..search() };
    assert!((usual(&slots).unwrap().elephants_most - 0.2).abs() < 1e-9);
    let disk = Elephant { consists_of: Resource::Other, ..search() };
    assert_eq!(usual(&disk), Err(Unpredicted::Unbounded));
    let mut store = RuleStore::default();
    store.found(at(0), vec![disk], Act::Propose);
    let minute = DecisionMeta { lasts: TimeSpan::from_secs(60), ..meta(1) };
    store.try_out(at(1), 1, Change::default(), minute, None).unwrap();
    assert_eq!(store.entry(1).unwrap().trial.as_ref().unwrap().predicted, None);
}

#[test]
fn a_trial_is_short_and_says_what_was_predicted_and_what_came() {
    let mut store = store();
    let lot = |p99: f64| ResponseStats {
        answered: 10.0,
        refused: 0.0,
        p50: Some(p99 / 10.0),
        p99: Some(p99),
    };
    let before = Gauge {
        at: Some(at(1)),
        seconds: 60.0,
        used: Some(0.9),
        elephants: lot(9.0),
        ants: lot(8.0),
    };
    let long = store.try_out(at(1), 1, Change::default(), meta(1), Some(before));
    assert_eq!(long, Err(Refused::Trial));
    let minute = DecisionMeta { lasts: TimeSpan::from_secs(60), ..meta(1) };
    let change = Change { max_concurrency: Some(1), ..Change::default() };
    store.try_out(at(1), 1, change, minute, Some(before)).unwrap();
    let during = Gauge { ants: lot(0.1), ..before };
    let notes = store.tick(at(61), |entry, from, to| {
        assert_eq!((entry.number, from, to), (1, at(1), at(61)));
        during
    });
    assert_eq!(notes.len(), 1);
    let entry = store.entry(1).unwrap();
    let trial = entry.trial.as_ref().unwrap();
    assert_eq!(
        (trial.before, trial.during, &entry.state),
        (before, Some(during), &State::Proposed)
    );
    let effect = trial.predicted.unwrap();
    // These requests use 72 % of two processors. One request at a time can use at most half of
    // them.
    assert!(
        (effect.elephants_now - 0.72).abs() < 1e-9 && (effect.elephants_most - 0.5).abs() < 1e-9
    );
    assert!((effect.held_back - 14.4 * (1.0 - 0.5 / 0.72)).abs() < 1e-9, "{effect:?}");
}

fn before(store: &RuleStore) -> Option<f64> {
    match &store.entry(1).expect("it is there").state {
        State::Ruled(rule) => rule.before.as_ref().map(|before| before.seconds),
        other => panic!("{other:?}"),
    }
}

#[test]
fn before_a_rule_is_a_minute_without_one() {
    let gauge = |seconds| Gauge { seconds, ..Gauge::default() };
    let usual = Change::default;
    let mut store = store();
    let short = DecisionMeta { lasts: TimeSpan::from_secs(60), ..meta(1) };
    store.try_out(at(0), 1, usual(), short, Some(gauge(1.0))).expect("a trial");
    assert_eq!(before(&store), Some(1.0));
    // The rule is approved during the trial, so the trial was in force in the last minute.
    store.approve(at(30), 1, usual(), meta(1)).expect("a rule");
    store.was_before(at(30), 1, Some(gauge(2.0)));
    assert_eq!(before(&store), Some(1.0));
    store.undo(at(40), 1, meta(1)).expect("it is undone");
    store.approve(at(60), 1, usual(), meta(1)).expect("a rule");
    store.was_before(at(60), 1, Some(gauge(3.0)));
    assert_eq!(before(&store), Some(1.0), "half of the last minute was the other's");
    store.undo(at(70), 1, meta(1)).expect("it is undone");
    store.approve(at(140), 1, usual(), meta(1)).expect("a rule");
    store.was_before(at(140), 1, Some(gauge(4.0)));
    assert_eq!(before(&store), Some(4.0));
    let kept = RuleStore::read(&store.text()).expect("as it was written");
    assert_eq!(kept, store);
    // After an hour the earlier measurement is out of date, and a missing measurement stays
    // missing.
    store.approve(at(4000), 1, usual(), meta(1)).expect("another rule");
    store.was_before(at(4000), 1, Some(gauge(5.0)));
    assert_eq!(before(&store), None);
    store.approve(at(4100), 1, usual(), meta(1)).expect("another rule");
    store.was_before(at(4100), 1, Some(gauge(6.0)));
    assert_eq!(before(&store), None, "that minute was under a rule");
    store.undo(at(4110), 1, meta(1)).expect("it is undone");
    store.approve(at(4200), 1, usual(), meta(1)).expect("a rule");
    store.was_before(at(4200), 1, None);
    assert_eq!(before(&store), None, "nobody measured it");
}

#[test]
fn what_holds_back_by_itself_again_is_not_held_against_itself() {
    let mut store = RuleStore::default();
    store.found(at(0), vec![search()], Act::Auto);
    store.was_before(at(0), 1, Some(Gauge { seconds: 5.0, ..Gauge::default() }));
    assert_eq!(before(&store), Some(5.0));
    store.tick(at(3600), |_, _, _| Gauge::default());
    store.found(at(3605), vec![search()], Act::Auto);
    store.was_before(at(3605), 1, Some(Gauge { seconds: 6.0, ..Gauge::default() }));
    assert_eq!(before(&store), None, "that is too long ago, and the last minute was the other's");
}

#[test]
fn a_long_trial_is_not_measured_against_a_time_with_another_rule() {
    let mut store = store();
    store.found(at(0), vec![search()], Act::Propose);
    store.approve(at(0), 1, Change::default(), meta(1)).expect("it is ruled");
    store.undo(at(300), 1, meta(1)).expect("it is undone");
    let measured = |seconds| Some(Gauge { seconds, ..Gauge::default() });
    let mut tried = |now, seconds| {
        store
            .try_out(at(now), 1, Change::default(), briefly(), measured(seconds))
            .expect("a trial");
        let before = store.entry(1).unwrap().trial.as_ref().unwrap().before;
        store.undo(at(now + 1), 1, meta(1)).expect("it is undone");
        before.seconds
    };
    // The rule ended two minutes before the trial began.
    assert!(tried(420, 600.0) == 0.0, "half of that time was the rule's");
    assert!(tried(500, 60.0) > 0.0);
}
