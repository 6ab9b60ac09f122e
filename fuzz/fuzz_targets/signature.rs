//! Checks that no bytes are accepted as the signature of an agent, and that reading a directory of
//! keys never panics.
//!
//! The input is the fields of a request, each on a line: the letter of a field, and its value.
#![no_main]

use std::borrow::Cow;

use bywash_agents::{Message, read_keys, verify};
use libfuzzer_sys::fuzz_target;

const KEYS: &str = r#"{"keys": [{"kty": "OKP", "crv": "Ed25519",
    "x": "JrQLj5P_89iXES9-vFgrIy29clF9CC_oPPsw3c5D0bs"}]}"#;

struct Request<'b>(Vec<(&'static str, &'b [u8])>);

impl Message for Request<'_> {
    fn derived(&self, name: &str) -> Option<Cow<'_, str>> {
        name.strip_prefix("@a").map(|rest| Cow::Owned(rest.to_owned()))
    }

    fn fields(&self, name: &str) -> impl Iterator<Item = &[u8]> {
        self.0.iter().filter(move |(one, _)| *one == name).map(|(_, value)| *value)
    }
}

fuzz_target!(|bytes: &[u8]| {
    if let Ok(text) = std::str::from_utf8(bytes) {
        let _ = read_keys(text);
    }
    let field = |line: &[u8]| match line.first()? {
        b'i' => Some("signature-input"),
        b's' => Some("signature"),
        b'a' => Some("signature-agent"),
        _ => Some("accept"),
    };
    let lines = bytes.split(|byte| *byte == b'\n');
    let fields = lines.filter_map(|line| Some((field(line)?, &line[1..]))).collect();
    let keys = read_keys(KEYS).expect("the directory is valid");
    let key = &keys[0];
    let found = verify(&Request(fields), 1_735_690_000, |_| Some(((), key)));
    assert!(found.is_none_or(|found| found.is_err()), "nobody has signed that");
});
