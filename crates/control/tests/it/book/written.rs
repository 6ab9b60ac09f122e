//! Tests of the stored document, and of rules in the configuration file.

use bywash_control::{
    Act, Book, Change, Elephant, Grants, Limit, Note, Refused, What, Word, Written,
};
use bywash_terminal::text::is_unsafe;

use super::{at, book, nothing, other, search, word};

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
    let by_hand = book.text().replace("\"max_concurrency\": 2", "\"max_concurrency\": 0");
    assert_ne!(by_hand, book.text());
    assert_eq!(Book::read(&by_hand).unwrap().in_force(), []);
}

#[test]
fn rules_of_the_file_hold_as_long_as_they_stand_there() {
    let mut book = book();
    book.approve(at(1), 1, Change::default(), word(1)).unwrap();
    let grants = Grants { max_concurrency: 1, ..Grants::proposed(&search()) };
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
    assert_eq!(
        (rule["max_concurrency"].as_integer(), rule["rate"].as_float()),
        (Some(2), Some(2.0))
    );
    assert_eq!(rule["wait"].as_str(), Some("10s"));
}

#[test]
fn what_is_exported_of_a_name_with_a_control_character_is_toml() {
    let mut book = Book::default();
    let pattern = "/a\u{7f}\u{1}\"\\b\u{202e}\u{e0001}";
    book.found(at(0), vec![Elephant { pattern: pattern.into(), ..search() }], Act::Propose);
    book.approve(at(1), 1, Change::default(), word(1)).expect("a rule");
    let text = book.exported();
    let read: toml::Table = text.parse().unwrap_or_else(|why| panic!("{why}: {text:?}"));
    let rules = read["throttle"].as_table().expect("rules by name");
    assert!(rules.values().all(|rule| rule["match"].as_str() == Some(pattern)), "{text}");
    assert!(!text.contains(|c: char| c != '\n' && is_unsafe(c)), "{text:?}");
}
