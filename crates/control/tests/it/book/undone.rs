//! Tests of decisions that operators undo.

use bywash_control::{Act, Book, Change, Elephant, Grants, MOST_ENTRIES, State, Written};

use super::{at, book, nothing, other, search, word};

#[test]
fn what_is_undone_is_left_alone_for_as_long_as_was_said_whatever_it_was() {
    let decisions: [fn(&mut Book); 4] = [
        |book| drop(book.reject(at(1), 1, word(1)).expect("it is rejected")),
        |book| drop(book.approve(at(1), 1, Change::default(), word(1)).expect("it is ruled")),
        |book| drop(book.found(at(1), vec![search()], Act::Auto)),
        |book| {
            book.found(at(1), vec![search()], Act::Auto);
            book.approve(at(1), 1, Change::default(), word(1)).expect("another rule");
        },
    ];
    for decide in decisions {
        let mut book = book();
        decide(&mut book);
        assert_ne!(book.entry(1).unwrap().state, State::Proposed);
        book.undo(at(2), 1, word(2)).expect("it is undone");
        assert_eq!(book.entry(1).unwrap().left_alone, Some(at(2 + 7200)));
        book.found(at(3), vec![search()], Act::Auto);
        assert_eq!(book.entry(1).unwrap().state, State::Proposed);
        book.found(at(2 + 7200), vec![search()], Act::Auto);
        assert_ne!(book.entry(1).unwrap().state, State::Proposed);
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
fn what_is_left_alone_is_not_forgotten_before() {
    let provisional = || vec![Elephant { provisional: true, ..search() }];
    // The three entries are found provisionally, asked for by name, and found once. If no decision
    // was undone, each of them is forgotten sooner.
    let begins: [fn(&mut Book, Vec<Elephant>); 3] = [
        |book, provisional| drop(book.found(at(0), provisional, Act::Propose)),
        |book, _| drop(book.ask(at(0), search(), word(1)).expect("a route")),
        |book, _| drop(book.found(at(0), vec![search()], Act::Propose)),
    ];
    for begin in begins {
        let mut book = Book::default();
        begin(&mut book, provisional());
        let gone = book.clone();
        book.reject(at(1), 1, word(1)).expect("it is rejected");
        book.undo(at(2), 1, word(24 * 30)).expect("it is undone");
        let end = 2 + 30 * 86_400;
        for mut book in [gone, book] {
            let stays = book.was_decided();
            book.found(at(10), Vec::new(), Act::Auto);
            book.tick(at(end - 10), nothing);
            assert_eq!(book.entry(1).is_ok(), stays);
            book.found(at(end - 5), vec![search()], Act::Auto);
            assert_eq!(book.in_force().is_empty(), stays);
        }
    }
}

#[test]
fn of_a_book_without_the_mark_it_is_told_by_what_is_left_alone() {
    let mut book = book();
    book.reject(at(1), 1, word(1)).expect("it is rejected");
    book.undo(at(2), 1, word(1)).expect("it is undone");
    let old = book.text().replace("\"decided\": true", "\"decided\": false");
    assert_ne!(old, book.text());
    assert!(Book::read(&old).expect("it is read").was_decided());
}

#[test]
fn a_full_book_makes_room_by_what_nothing_was_said_of() {
    let mut book = book();
    book.reject(at(1), 1, word(1)).expect("it is rejected");
    book.undo(at(2), 1, word(24)).expect("it is undone");
    book.found(at(3), (0..MOST_ENTRIES + 10).map(other).collect(), Act::Propose);
    assert_eq!(book.entries().len(), MOST_ENTRIES);
    assert!(book.entry(1).is_ok(), "the oldest, which is left alone");
}
