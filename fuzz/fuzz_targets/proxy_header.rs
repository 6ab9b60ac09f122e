//! Checks that the result of parsing a PROXY header does not depend on the pieces in which its
//! bytes arrive, and that parsing takes no byte after the header.
#![no_main]

use libfuzzer_sys::fuzz_target;

/// The gateway's own file, included here because its module is private in the gateway.
#[path = "../../crates/gateway/src/client"]
mod client {
    pub(crate) mod proxy_header;
}

use client::proxy_header::{Parsed, parse};

/// The maximum length of a header, in bytes. No caller waits for more bytes.
const LONGEST: usize = 16 + 2048;

fuzz_target!(|bytes: &[u8]| {
    let whole = parse(bytes);
    let decided =
        (0..=bytes.len()).map(|come| parse(&bytes[..come])).find(|is| *is != Ok(Parsed::More));
    assert_eq!(decided.unwrap_or(Ok(Parsed::More)), whole);
    match whole {
        Ok(Parsed::More) => assert!(bytes.len() < LONGEST),
        Ok(Parsed::Done { used, source }) => {
            assert!(used <= bytes.len() && used <= LONGEST);
            assert_eq!(parse(&bytes[..used]), whole);
            // The address is in its canonical form, so that each client has only one address.
            assert!(source.is_none_or(|source| source.ip().to_canonical() == source.ip()));
        }
        Err(_) => {}
    }
});
