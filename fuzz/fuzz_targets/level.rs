//! Checks that only signed bytes are accepted as a level of service.
//!
//! The input is tried as it is, and as a name, a time and changes to a valid signed text. An
//! accepted text must be exactly the text that was signed.
#![no_main]

use bywash_token::level::LONGEST;
use bywash_token::{LevelKeys, Secret, Secrets, UnixTime, is_level_name, read_level, sign_level};
use bywash_units::TimeSpan;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let keys = LevelKeys::new(&Secrets::fresh(Secret::from_bytes([7; 32])));
    let read = |text: &[u8], now| read_level(&keys, text, now, TimeSpan::ZERO).is_ok();
    let Some((head, name)) = bytes.split_first_chunk::<10>() else { return };
    let [a, b, c, d, e, f, g, h, place, change] = *head;
    let now = UnixTime::from_millis(u64::from_be_bytes([a, b, c, d, e, f, g, h]));
    assert!(!read(bytes, now) && !read(name, now), "nobody has signed that");

    let Ok(name) = std::str::from_utf8(name) else { return };
    let Some(text) = sign_level(&keys, name, now) else {
        assert!(!is_level_name(name));
        return;
    };
    let text = text.as_bytes();
    assert!(text.len() <= LONGEST);
    assert_eq!(read_level(&keys, text, now, TimeSpan::ZERO), Ok(name));

    let place = usize::from(place) % text.len();
    let mut changed = text.to_vec();
    changed[place] ^= change.max(1);
    assert!(!read(&changed, now));
    changed.remove(place);
    assert!(!read(&changed, now));
    let mut longer = text.to_vec();
    longer.insert(place, change);
    assert!(!read(&longer, now));
});
