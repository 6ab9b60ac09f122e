//! Tests of elephants that are listed because operators named them.

use bywash_control::{
    Act, Change, DecisionMeta, Elephant, Gauge, MOST_ENTRIES, Refused, RuleStore, State, What,
};

use super::{at, briefly, meta, other, search, store};

#[test]
fn what_nobody_has_found_can_be_asked_for_and_is_forgotten_if_nothing_is_decided() {
    let mut store = store();
    let little = Elephant { share: 0.01, resource: "slots".into(), ..other(7) };
    let (number, note) = store.ask(at(0), little.clone(), meta(1)).expect("it is there now");
    let note = note.expect("it is new");
    assert_eq!((number, note.what, note.by.as_str()), (2, What::Asked, "the night shift"));
    assert_eq!(store.asked().collect::<Vec<_>>(), ["/other/7"]);
    let again = store.ask(at(1), little.clone(), meta(1)).expect("it is there");
    assert!(again == (2, None) && store.entries().len() == 2, "once");
    assert_eq!(
        store.ask(at(1), search(), meta(1)),
        Ok((1, None)),
        "as what was found has a number"
    );
    store.found(at(60), vec![search()], Act::Auto);
    assert_eq!(store.entry(2).expect("it stays").state, State::Proposed, "nobody decided");
    store.uses(vec![Elephant { rate: 3.0, ..little }, Elephant { rate: 3.0, ..search() }]);
    let rate = |number| store.entry(number).unwrap().found.as_ref().unwrap().rate;
    assert!((rate(2) - 3.0).abs() < 1e-9 && (rate(1) - 14.4).abs() < 1e-9, "of what was asked for");
    let gauge = |_: &_, _, _| Gauge::default();
    store.approve(at(3000), 2, Change::default(), meta(1)).expect("a rule");
    store.tick(at(3601), gauge);
    assert!(store.in_force().iter().any(|rule| rule.id.0 == 2), "what is decided holds");
    store.undo(at(3700), 2, meta(1)).expect("it is undone");
    store.tick(at(7200), gauge);
    assert!(store.entry(2).is_ok(), "it can be looked at after that");
    store.tick(at(7301), gauge);
    assert_eq!(store.entry(2), Err(Refused::Unknown(2)));
    assert_eq!(store.entry(1).map(|one| one.asked), Ok(false));
}

#[test]
fn transactions_and_what_there_is_no_place_for_cannot_be_asked_for() {
    let mut store = store();
    let transacting = Elephant { transacts: true, ..other(1) };
    assert_eq!(store.ask(at(0), transacting, meta(1)), Err(Refused::Transacts));
    let unsaid = DecisionMeta { why: String::new(), ..meta(1) };
    assert!(matches!(store.ask(at(0), other(1), unsaid), Err(Refused::DecisionMeta(_))));
    store.found(at(0), (0..MOST_ENTRIES).map(other).collect(), Act::Propose);
    for number in store.entries().iter().map(|one| one.number).collect::<Vec<_>>() {
        store.reject(at(1), number, meta(1)).expect("it is left alone");
    }
    assert_eq!(store.ask(at(2), other(1000), meta(1)), Err(Refused::Full));
}

#[test]
fn what_was_found_long_ago_is_told_anew_when_it_is_asked_for() {
    let mut store = store();
    let now = Elephant { rate: 1.0, resource: "slots".into(), ..search() };
    store.ask(at(30), now.clone(), meta(1)).expect("it is there");
    let rate = |store: &RuleStore| store.entry(1).unwrap().found.as_ref().unwrap().rate;
    assert!((rate(&store) - 14.4).abs() < 1e-9, "it was found just now");
    store.ask(at(86_400), now, meta(1)).expect("it is there");
    assert!((rate(&store) - 1.0).abs() < 1e-9 && store.entry(1).unwrap().asked);
}

#[test]
fn what_was_asked_for_stays_though_it_was_found_for_a_moment() {
    let mut store = RuleStore::default();
    store.ask(at(0), search(), meta(1)).expect("it is there");
    store.found(at(10), vec![Elephant { provisional: true, ..search() }], Act::Propose);
    store.found(at(20), Vec::new(), Act::Propose);
    assert!(store.entry(1).is_ok_and(|entry| entry.asked));
    store.ask(at(3590), search(), meta(1)).expect("asked again");
    store.tick(at(3700), |_, _, _| Gauge::default());
    assert!(store.entry(1).is_ok(), "an hour from then");
    store.found(at(3710), vec![search()], Act::Propose);
    assert!(store.entry(1).is_ok_and(|entry| !entry.asked), "it is one by itself");
}

#[test]
fn what_was_found_long_ago_can_be_asked_for_again_by_somebody_with_a_why() {
    let mut store = store();
    store.found(at(0), vec![search()], Act::Propose);
    store.try_out(at(1), 1, Change::default(), briefly(), None).expect("a trial");
    store.undo(at(2), 1, meta(1)).expect("it is undone");
    let (number, note) = store.ask(at(3600), search(), meta(1)).expect("there is one");
    assert_eq!((number, note.map(|note| note.what)), (1, Some(What::Asked)));
    store.tick(at(3 * 3600), |_, _, _| Gauge::default());
    assert!(store.entry(1).unwrap().trial.is_some(), "what was tried is not forgotten so soon");
    store.tick(at(8 * 86_400), |_, _, _| Gauge::default());
    assert!(store.entry(1).is_err());
}
