//! Properties that must hold for every signed level, tested on many.

use bywash_token::level::LONGEST;
use bywash_token::{
    Keys, LevelKeys, LevelRefusal, Secret, Secrets, UnixTime, is_level_name, open, read_level,
    sign_level,
};
use bywash_units::TimeSpan;
use proptest::prelude::*;

const LIFETIME: TimeSpan = TimeSpan::from_secs(60);

fn secrets(number: u8) -> Secrets {
    Secrets::fresh(Secret::from_bytes([number; 32]))
}

fn rotated(secrets: &Secrets, number: u8) -> Secrets {
    let text = Secrets::rotated(&secrets.to_text(), &Secret::from_bytes([number; 32])).unwrap();
    Secrets::parse(&text).unwrap()
}

fn keys(number: u8) -> LevelKeys {
    LevelKeys::new(&secrets(number))
}

fn at(second: u64) -> UnixTime {
    UnixTime::from_millis((1_800_000_000 + second) * 1000)
}

fn signed(keys: &LevelKeys, level: &str, now: UnixTime) -> Vec<u8> {
    sign_level(keys, level, now).unwrap().as_bytes().to_vec()
}

fn read<'t>(keys: &LevelKeys, text: &'t [u8], second: u64) -> Result<&'t str, LevelRefusal> {
    read_level(keys, text, at(second), LIFETIME)
}

#[test]
fn a_text_is_the_level_the_time_and_a_signature() {
    let text = signed(&keys(1), "high", at(0));
    // A test of another implementation can use this text. In Python: key = hmac(bytes([1])*32,
    // b"bywash level: sign"); hmac(key, b"high;1800000000")
    assert_eq!(
        String::from_utf8(text).unwrap(),
        "high;1800000000;2aiWJoclIrWw24xX4e-vCSyf2MWRUcjqOPyCvx96lPY"
    );
}

#[test]
fn a_name_is_short_and_plain() {
    let longest = "a".repeat(32);
    for name in ["a", "0", "-", "high", "level-2", &longest] {
        assert!(is_level_name(name), "{name}");
        assert!(sign_level(&keys(1), name, at(0)).is_some(), "{name}");
    }
    let longer = "a".repeat(33);
    for name in ["", "High", "a b", "a_b", "a;b", "é", "a\n", &longer] {
        assert!(!is_level_name(name), "{name}");
        assert!(sign_level(&keys(1), name, at(0)).is_none(), "{name}");
    }
}

#[test]
fn it_lives_as_long_as_its_reader_says_and_is_not_from_the_future() {
    let keys = keys(1);
    let text = signed(&keys, "high", at(100));
    assert_eq!(read(&keys, &text, 160), Ok("high"));
    assert_eq!(read(&keys, &text, 161), Err(LevelRefusal::TooOld));
    assert_eq!(read(&keys, &text, 40), Ok("high"));
    assert_eq!(read(&keys, &text, 39), Err(LevelRefusal::FromTheFuture));
}

#[test]
fn a_key_is_exchanged_without_anybody_losing_a_level() {
    let first = secrets(1);
    let second = rotated(&first, 2);
    let third = rotated(&second, 3);
    let [first, second, third] = [first, second, third].map(|secrets| LevelKeys::new(&secrets));
    let [old, new] = [&first, &second].map(|keys| signed(keys, "high", at(0)));
    let forged = Err(LevelRefusal::Forged);
    assert_eq!(
        [&first, &second, &third].map(|keys| read(keys, &old, 0)),
        [Ok("high"), Ok("high"), forged]
    );
    assert_eq!(
        [&first, &second, &third].map(|keys| read(keys, &new, 0)),
        [forged, Ok("high"), Ok("high")]
    );
}

#[test]
fn the_same_secret_in_both_files_is_found_and_signs_neither_for_the_other() {
    let (tokens, levels) = (Keys::new(&secrets(1)), keys(1));
    assert!(tokens.are_made_of(&secrets(1)) && !tokens.are_made_of(&secrets(2)));
    assert!(tokens.are_made_of(&rotated(&secrets(1), 2)));
    assert!(Keys::new(&rotated(&secrets(1), 2)).are_made_of(&rotated(&secrets(1), 3)));
    assert!(open(&tokens, &signed(&levels, "high", at(0))).is_err());
}

#[test]
fn what_is_no_level_is_told_apart() {
    let keys = keys(1);
    let text = signed(&keys, "high", at(0));
    let (payload, tag) = text.split_at(text.len() - 43);
    let with = |payload: &str| [payload.as_bytes(), tag].concat();
    for bad in [
        Vec::new(),
        b"high".to_vec(),
        tag.to_vec(),
        payload.to_vec(),
        with("high;1800000000"),
        with(";1800000000;"),
        with("high;;"),
        with("high;+1800000000;"),
        with("high;99999999999999999999;"),
        with("high;1800000000;;"),
        with("High;1800000000;"),
        with(" high;1800000000;"),
        [&text[..], b"="].concat(),
        [&text[..], b" "].concat(),
        [&text[..text.len() - 1], b"="].concat(),
    ] {
        let shown = String::from_utf8_lossy(&bad).into_owned();
        assert_eq!(read(&keys, &bad, 0), Err(LevelRefusal::Malformed), "{shown}");
    }
    for forged in [
        with("low;1800000000;"),
        with("high;1800000001;"),
        with("high;01800000000;"),
        [payload, [b'A'; 43].as_slice()].concat(),
    ] {
        assert_eq!(read(&keys, &forged, 0), Err(LevelRefusal::Forged));
    }
    let two = [&text[..], b", ", &text[..]].concat();
    assert_eq!(read(&keys, &two, 0), Err(LevelRefusal::TooLong));
    assert_eq!(read(&keys, &[b'a'; LONGEST + 1], 0), Err(LevelRefusal::TooLong));
}

#[test]
fn every_refusal_has_its_number_and_its_word() {
    for (number, refusal) in LevelRefusal::ALL.into_iter().enumerate() {
        assert_eq!(refusal as usize, number);
        assert!(!refusal.name().is_empty());
    }
}

#[test]
fn neither_a_key_nor_a_signature_is_shown() {
    let keys = keys(0xab);
    let text = sign_level(&keys, "high", at(0)).unwrap();
    let shown = format!("{keys:?} {text:?}");
    assert!(!shown.contains("171") && !shown.contains("abab") && !shown.contains("high"));
}

fn any_name() -> impl Strategy<Value = String> {
    "[a-z0-9-]{1,32}"
}

proptest! {
    #[test]
    fn what_is_signed_can_be_read(name in any_name(), seconds in 0..u64::MAX / 1000) {
        let (keys, now) = (keys(3), UnixTime::from_millis(seconds * 1000));
        let text = signed(&keys, &name, now);
        prop_assert!(text.len() <= LONGEST && text.iter().all(u8::is_ascii_graphic));
        prop_assert_eq!(read_level(&keys, &text, now, TimeSpan::ZERO), Ok(name.as_str()));
    }

    #[test]
    fn one_changed_character_is_enough(name in any_name(), place: prop::sample::Index, to: u8) {
        let keys = keys(3);
        let mut text = signed(&keys, &name, at(0));
        let place = place.index(text.len());
        prop_assume!(text[place] != to);
        text[place] = to;
        prop_assert!(read(&keys, &text, 0).is_err());
    }

    #[test]
    fn one_character_more_or_less_is_enough(name in any_name(), place: prop::sample::Index, more: u8) {
        let keys = keys(3);
        let text = signed(&keys, &name, at(0));
        let place = place.index(text.len());
        let mut less = text.clone();
        less.remove(place);
        prop_assert!(read(&keys, &less, 0).is_err());
        let mut longer = text.clone();
        longer.insert(place, more);
        prop_assert!(read(&keys, &longer, 0).is_err());
    }

    #[test]
    fn what_nobody_has_signed_is_refused(bytes in prop::collection::vec(any::<u8>(), 0..120)) {
        prop_assert!(read(&keys(3), &bytes, 0).is_err());
    }

    #[test]
    fn what_looks_like_a_level_is_none_without_the_key(name in any_name(), tag in "[A-Za-z0-9_-]{43}") {
        let text = format!("{name};1800000000;{tag}");
        prop_assert!(read(&keys(3), text.as_bytes(), 0).is_err());
    }

    #[test]
    fn another_key_verifies_nothing(name in any_name()) {
        let text = signed(&keys(3), &name, at(0));
        for other in 4..=255 {
            prop_assert_eq!(read(&keys(other), &text, 0), Err(LevelRefusal::Forged));
        }
    }
}
