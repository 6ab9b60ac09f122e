//! Checks that only sealed bytes are accepted as a token, and that a file of keys is either read or
//! refused.
//!
//! The input is tried as a token, as a file of keys, and as the claims of a token that this target
//! seals. The sealed token is then changed. Only the unchanged token may be accepted.
#![no_main]

use bywash_token::{
    Claims, Holder, KeyFileError, Keys, LONGEST, Mark, Secret, Secrets, SessionName, UnixTime,
    open, seal,
};
use bywash_units::TimeSpan;
use libfuzzer_sys::fuzz_target;

const TTL: TimeSpan = TimeSpan::from_secs(1800);

fuzz_target!(|bytes: &[u8]| {
    let keys = Keys::new(&Secrets::fresh(Secret::from_bytes([7; 32])));
    assert!(open(&keys, bytes).is_err(), "nobody has signed that");

    if let Ok(text) = std::str::from_utf8(bytes)
        && let Ok(secrets) = Secrets::parse(text)
    {
        assert_eq!(Secrets::parse(&secrets.to_text()).as_ref(), Ok(&secrets));
        let rotated = Secrets::rotated(text, &Secret::from_bytes([8; 32])).expect("it was read");
        assert!(matches!(Secrets::parse(&rotated), Ok(_) | Err(KeyFileError::Same)));
    }

    let Some((head, rest)) = bytes.split_first_chunk::<16>() else { return };
    let [a, b, c, d, session @ .., place, change, _, _] = *head;
    let now = UnixTime::from_millis(u64::from(u32::from_be_bytes([a, b, c, d])) * 1000);
    let mut claims = Claims::new(now, SessionName(session));
    claims.ordered = now.day().filter(|_| a & 1 == 1);
    for class in rest.chunks(3) {
        claims.served.insert(Mark::of(&String::from_utf8_lossy(class)));
    }
    let text = seal(&keys, &claims);
    assert!(text.as_bytes().len() <= LONGEST);
    let opened = open(&keys, text.as_bytes()).expect("it was sealed with these keys");
    let itself = Holder::Itself(opened.session());
    assert_eq!(opened.proves(now, TTL, &itself), Ok(&claims.served));
    // A fuzzer that sees the compared bytes can find the name of a session. An attacker cannot see
    // these bytes.
    let holder = Holder::Cookie(rest);
    let is_hers = keys.session(&holder) == opened.session();
    assert_eq!(opened.proves(now, TTL, &holder).is_ok(), is_hers);

    let mut changed = text.as_bytes().to_vec();
    let place = usize::from(place) % changed.len();
    changed[place] ^= change.max(1);
    assert!(open(&keys, &changed).is_err());
    changed[place] = text.as_bytes()[place];
    changed.extend_from_slice(&rest[..rest.len().min(8)]);
    assert_eq!(open(&keys, &changed).is_ok(), rest.is_empty());
});
