//! Checks that a decoded body does not depend on the pieces in which its bytes arrive, and that
//! decoding takes no byte after the body.
//!
//! The first byte of the input chooses the framing. The second byte is the size of the pieces. If
//! the framing is a length, the second byte is also that length.
#![no_main]

use bywash_fuzz::{Body, decoded};
use bywash_message::{Framing, write_chunk, write_last_chunk};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let [framing, piece, bytes @ ..] = input else { return };
    let framing = match framing % 4 {
        0 => Framing::Length(u64::from(*piece)),
        1 => Framing::UntilClose,
        2 => Framing::None,
        _ => Framing::Chunked,
    };
    let whole = decoded(framing, bytes, bytes.len().max(1));
    assert_eq!(decoded(framing, bytes, 1), whole);
    assert_eq!(decoded(framing, bytes, usize::from(*piece).max(1)), whole);
    if let Body::Ended { bytes: body, used, .. } = &whole {
        // The bytes that follow a body do not change the result, and the bytes that the body used
        // suffice to decode it.
        assert_eq!(decoded(framing, &bytes[..*used], usize::MAX), whole);
        let mut out = Vec::new();
        write_chunk(&mut out, body);
        write_last_chunk(&mut out, None);
        let again = decoded(Framing::Chunked, &out, out.len());
        let expected = Body::Ended { bytes: body.clone(), trailers: Vec::new(), used: out.len() };
        assert_eq!(again, expected);
    }
});
