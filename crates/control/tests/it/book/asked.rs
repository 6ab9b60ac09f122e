//! Tests of elephants that operators ask for by name.

use bywash_control::{
    Act, Book, Change, Elephant, Gauge, MOST_ENTRIES, Refused, State, What, Word,
};

use super::{at, book, briefly, other, search, word};

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
fn transactions_and_what_there_is_no_place_for_cannot_be_asked_for() {
    let mut book = book();
    let transacting = Elephant { transacts: true, ..other(1) };
    assert_eq!(book.ask(at(0), transacting, word(1)), Err(Refused::Transacts));
    let unsaid = Word { why: String::new(), ..word(1) };
    assert!(matches!(book.ask(at(0), other(1), unsaid), Err(Refused::Word(_))));
    book.found(at(0), (0..MOST_ENTRIES).map(other).collect(), Act::Propose);
    for number in book.entries().iter().map(|one| one.number).collect::<Vec<_>>() {
        book.reject(at(1), number, word(1)).expect("it is left alone");
    }
    assert_eq!(book.ask(at(2), other(1000), word(1)), Err(Refused::Full));
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
