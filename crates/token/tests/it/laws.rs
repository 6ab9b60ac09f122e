//! Properties that must hold for every token, tested on many.

use bywash_token::{
    Claims, Day, Holder, KeyFileError, Keys, LONGEST, Mark, Marks, Refusal, Secret, Secrets,
    SessionName, Text, UnixTime, open, seal,
};
use bywash_units::TimeSpan;
use proptest::prelude::*;

const TTL: TimeSpan = TimeSpan::from_secs(1800);
const SEASON: TimeSpan = TimeSpan::from_secs(90 * 86_400);
const HERS: Holder<'_> = Holder::Cookie(b"hers");

fn secret(number: u8) -> Secret {
    Secret::from_bytes([number; 32])
}

fn rotated(secrets: &Secrets, byte: u8) -> Secrets {
    let text = Secrets::rotated(&secrets.to_text(), &secret(byte)).unwrap();
    Secrets::parse(&text).unwrap()
}

fn keys(number: u8) -> Keys {
    Keys::new(&Secrets::fresh(secret(number)))
}

fn at(second: u64) -> UnixTime {
    UnixTime::from_millis((1_800_000_000 + second) * 1000)
}

fn claims(keys: &Keys, classes: &[&str]) -> Claims {
    let mut claims = Claims::new(at(0), keys.session(&HERS));
    for class in classes {
        claims.served.insert(Mark::of(class));
    }
    claims
}

fn token(keys: &Keys, classes: &[&str]) -> Text {
    seal(keys, &claims(keys, classes))
}

fn refusal(keys: &Keys, text: &[u8], now: UnixTime, holder: &Holder<'_>) -> Option<Refusal> {
    open(keys, text).and_then(|opened| opened.proves(now, TTL, holder).map(|_| ())).err()
}

#[test]
fn a_token_proves_what_it_was_given_for_and_nothing_else() {
    let keys = keys(1);
    let text = token(&keys, &["details", "login"]);
    let opened = open(&keys, text.as_bytes()).unwrap();
    let proven = opened.proves(at(60), TTL, &HERS).unwrap();
    let has = |class| proven.contains(Mark::of(class));
    assert_eq!((has("details"), has("login"), has("pay"), proven.len()), (true, true, false, 2));
}

#[test]
fn beside_another_cookie_it_proves_nothing() {
    let keys = keys(1);
    let text = token(&keys, &["login"]);
    for other in [&b"his"[..], b"", b"hers ", b"her"] {
        let refusal = refusal(&keys, text.as_bytes(), at(0), &Holder::Cookie(other));
        assert_eq!(refusal, Some(Refusal::Foreign));
    }
}

#[test]
fn it_lives_as_long_as_a_session_and_is_not_from_the_future() {
    let keys = keys(1);
    let text = token(&keys, &["login"]);
    let refusal_at = |second| refusal(&keys, text.as_bytes(), at(second), &HERS);
    assert_eq!((refusal_at(1800), refusal_at(1801)), (None, Some(Refusal::Stale)));
    let mut early = claims(&keys, &["login"]);
    for (ahead, refused) in [(60, None), (61, Some(Refusal::Stale))] {
        early.issued = at(ahead);
        let text = seal(&keys, &early);
        assert_eq!(refusal(&keys, text.as_bytes(), at(0), &HERS), refused, "{ahead} s ahead");
    }
}

#[test]
fn it_asks_to_be_renewed_at_half_its_time_and_when_its_key_is_on_its_way_out() {
    let secrets = Secrets::fresh(secret(1));
    let before = Keys::new(&secrets);
    let after = Keys::new(&rotated(&secrets, 2));
    let text = token(&before, &["login"]);
    let wants = |keys, second| {
        open(keys, text.as_bytes()).map(|opened| opened.wants_renewal(at(second), TTL)).unwrap()
    };
    assert_eq!((wants(&before, 900), wants(&before, 901), wants(&after, 0)), (false, true, true));
}

#[test]
fn a_key_is_exchanged_without_anybody_losing_a_token() {
    let first = Secrets::fresh(secret(1));
    let second = rotated(&first, 2);
    let third = rotated(&second, 3);
    let [first, second, third] = [first, second, third].map(|secrets| Keys::new(&secrets));
    let [old, new] = [&first, &second].map(|keys| token(keys, &["login"]));
    let read = |keys, text: &Text| refusal(keys, text.as_bytes(), at(0), &HERS);
    assert_eq!([&first, &second, &third].map(|keys| read(keys, &old)), [None, None, UNKNOWN]);
    assert_eq!([&first, &second, &third].map(|keys| read(keys, &new)), [UNKNOWN, None, None]);
}

const UNKNOWN: Option<Refusal> = Some(Refusal::UnknownKey);

#[test]
fn that_somebody_has_ordered_outlives_the_session_by_a_season_and_no_more() {
    let keys = keys(1);
    let mut claims = claims(&keys, &["confirm"]);
    claims.ordered = at(0).day();
    let text = seal(&keys, &claims);
    let opened = open(&keys, text.as_bytes()).unwrap();
    let ordered_after = |days: u64| opened.ordered(at(days * 86_400), SEASON);
    assert_eq!((ordered_after(0), ordered_after(90)), (claims.ordered, claims.ordered));
    assert_eq!(ordered_after(91), None);
    assert_eq!(opened.ordered(UnixTime::from_millis(1_700_000_000_000), SEASON), None);
    let never = token(&keys, &["confirm"]);
    assert_eq!(open(&keys, never.as_bytes()).unwrap().ordered(at(0), SEASON), None);
}

#[test]
fn with_sixty_four_classes_it_still_fits_into_256_bytes() {
    let keys = keys(1);
    let mut claims = Claims::new(at(0), SessionName([255; 8]));
    let names: Vec<String> = (0..80).map(|number| format!("class-{number}")).collect();
    for name in &names {
        claims.served.insert(Mark::of(name));
    }
    assert_eq!(claims.served.len(), Marks::MOST);
    let text = seal(&keys, &claims);
    assert_eq!(text.as_bytes().len(), LONGEST);
    const { assert!(LONGEST <= 256) };
    let opened = open(&keys, text.as_bytes()).unwrap();
    let holder = Holder::Itself(opened.session());
    assert_eq!(opened.proves(at(0), TTL, &holder), Ok(&claims.served));
}

#[test]
fn names_with_the_same_mark_are_found_and_belong_to_none() {
    let names: Vec<String> = (0..2000).map(|number| format!("c{number}")).collect();
    let marks = Marks::distinct(names.iter().map(String::as_str));
    let unmarked = marks.iter().filter(|mark| mark.is_none()).count();
    assert!(unmarked >= 2, "of 2000 names some thirty pairs share a mark");
    let mut alone: Vec<Mark> = marks.iter().flatten().copied().collect();
    alone.sort_unstable();
    alone.dedup();
    assert_eq!(alone.len() + unmarked, names.len());
}

#[test]
fn a_file_of_keys_is_read_as_it_is_written_and_says_in_which_line_it_is_wrong() {
    let one = Secrets::fresh(secret(0xa5));
    let two = rotated(&one, 0x5a);
    for secrets in [&one, &two] {
        assert_eq!(Secrets::parse(&secrets.to_text()).as_ref(), Ok(secrets));
    }
    let key = "0123456789abcdefABCDEF".repeat(3)[..64].to_owned();
    let other = "f".repeat(64);
    assert!(Secrets::parse(&format!("\n# new\n{key}\r\n  {other}")).is_ok());
    let third = "e".repeat(64);
    for (text, fault) in [
        (String::new(), KeyFileError::None),
        ("# none\n".into(), KeyFileError::None),
        (format!("{key}\n\n{}", &other[..63]), KeyFileError::NoKey { line: 3 }),
        (format!("{key}0"), KeyFileError::NoKey { line: 1 }),
        (key.replace('0', "+"), KeyFileError::NoKey { line: 1 }),
        (key.replace('0', "é"), KeyFileError::NoKey { line: 1 }),
        (format!("{key} {other}"), KeyFileError::NoKey { line: 1 }),
        (format!("{key}\n{other}\n{third}"), KeyFileError::TooMany { line: 3 }),
        (format!("{key}\n{}", key.to_uppercase()), KeyFileError::Same),
    ] {
        assert_eq!(Secrets::parse(&text), Err(fault), "{text}");
    }
}

#[test]
fn an_exchange_of_the_key_leaves_what_else_stands_in_the_file() {
    let [one, two, three] = [1, 2, 3].map(|byte| Secrets::fresh(secret(byte)).to_text());
    let [one, two, three] = [&one, &two, &three].map(|text| text.lines().last().unwrap());
    let before = format!("# shop\n\n {one}\r\n# the one before\n{two}\n# end");
    let after = Secrets::rotated(&before, &secret(3)).unwrap();
    assert_eq!(after, format!("# shop\n\n{three}\n {one}\n# the one before\n# end\n"));
    let expected = Secrets::parse(&format!("{three}\n{one}"));
    assert_eq!(Secrets::parse(&after), expected);
    assert_eq!(Secrets::rotated("# none", &secret(3)), Err(KeyFileError::None));
}

#[test]
fn a_key_is_not_shown() {
    let secrets = Secrets::fresh(secret(0xab));
    let shown = format!("{secrets:?} {:?}", Keys::new(&secrets));
    assert!(!shown.contains("171") && !shown.contains("abab"), "{shown}");
}

#[test]
fn a_signature_of_another_length_is_none() {
    let keys = keys(1);
    let text = token(&keys, &["login"]);
    let text = text.as_bytes();
    for length in 0..text.len() {
        assert!(open(&keys, &text[..length]).is_err(), "{length}");
    }
    for more in ["A", "AA", "AAAA", "=", "==", " "] {
        assert!(open(&keys, &[text, more.as_bytes()].concat()).is_err(), "{more}");
    }
    assert_eq!(open(&keys, &[b'A'; 300]).unwrap_err(), Refusal::Malformed);
}

fn any_claims() -> impl Strategy<Value = Claims> {
    let names = prop::collection::vec("[a-z]{1,8}", 0..70);
    (0..4_000_000_000_u64, any::<[u8; 8]>(), names, any::<bool>()).prop_map(
        |(second, session, names, ordered)| {
            let now = UnixTime::from_millis(second * 1000);
            let mut claims = Claims::new(now, SessionName(session));
            for name in &names {
                claims.served.insert(Mark::of(name));
            }
            claims.ordered = now.day().filter(|_: &Day| ordered);
            claims
        },
    )
}

proptest! {
    #[test]
    fn what_is_sealed_can_be_opened_and_is_the_same(claims in any_claims()) {
        let keys = keys(3);
        let text = seal(&keys, &claims);
        let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_".contains(byte);
        prop_assert!(text.as_bytes().iter().all(plain));
        let opened = open(&keys, text.as_bytes()).unwrap();
        prop_assert_eq!(opened.session(), claims.session);
        let holder = Holder::Itself(claims.session);
        prop_assert_eq!(opened.proves(claims.issued, TTL, &holder), Ok(&claims.served));
        prop_assert_eq!(opened.ordered(claims.issued, SEASON), claims.ordered);
    }

    #[test]
    fn one_changed_character_is_enough(claims in any_claims(), place: prop::sample::Index, to: u8) {
        let keys = keys(3);
        let text = seal(&keys, &claims);
        let mut bytes = text.as_bytes().to_vec();
        let place = place.index(bytes.len());
        prop_assume!(bytes[place] != to);
        bytes[place] = to;
        prop_assert!(open(&keys, &bytes).is_err());
    }

    #[test]
    fn what_nobody_has_signed_is_refused(bytes in prop::collection::vec(any::<u8>(), 0..260)) {
        prop_assert!(open(&keys(3), &bytes).is_err());
    }

    #[test]
    fn a_key_of_the_same_name_does_not_verify_what_another_has_signed(claims in any_claims()) {
        let text = seal(&keys(3), &claims);
        for other in 4..=255 {
            let refusal = open(&keys(other), text.as_bytes()).unwrap_err();
            prop_assert!(matches!(refusal, Refusal::UnknownKey | Refusal::Forged));
        }
    }

    #[test]
    fn reading_a_file_of_keys_never_panics(text in "\\PC*") {
        let _ = Secrets::parse(&text);
    }
}
