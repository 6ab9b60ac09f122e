//! Checks that a canonical path is its own canonical form, and that it contains nothing that two
//! readers could interpret in different ways.
#![no_main]

use bywash_message::Target;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|raw: &[u8]| {
    let Ok(target) = Target::canonical(raw) else { return };
    assert_eq!(Target::canonical(target.path_and_query().as_bytes()).as_ref(), Ok(&target));
    let path = target.path();
    assert!(path.starts_with('/') && path.bytes().all(|byte| byte.is_ascii_graphic()));
    assert!(!path.contains(['\\', '#', '?', '"', '<', '>', '{', '}']) && !path.contains("%00"));
    // The most tolerant reader treats escaped slashes as slashes and removes parameters.
    let generous = path.replace("%2F", "/").replace("%5C", "/");
    for segment in generous.split('/') {
        let name = segment.split(';').next();
        assert!(!matches!(name, Some("." | "..")), "{path}");
    }
    // No character is escaped that need not be, and each escape has only one spelling.
    for escape in path.split('%').skip(1) {
        let digits = &escape[..2];
        assert!(!digits.bytes().any(|digit| digit.is_ascii_lowercase()), "{path}");
        let byte = u8::from_str_radix(digits, 16).expect("two digits");
        assert!(!byte.is_ascii_alphanumeric() && !b"-._~".contains(&byte), "{path}");
    }
    assert!(target.path_and_query().starts_with(path));
});
