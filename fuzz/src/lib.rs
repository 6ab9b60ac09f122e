//! Code that the targets share: limits that are small enough to be reached, and the forms in which
//! the results of two parsers are compared.
#![allow(clippy::missing_panics_doc, reason = "a panic is how a target tells what it found")]

use bywash_message::{Decoder, Fields, Framing, Head, Limits, Name, Part};

/// Limits small enough for a fuzzer to reach.
pub const SMALL: Limits = Limits { target: 64, fields: 12, bytes: 400 };

/// Limits large enough for every head that was accepted within [`SMALL`] and is written again.
/// Written again, a head can be longer: an escape takes three bytes instead of one, a space follows
/// each colon, and framing fields are written out.
pub const AMPLE: Limits = Limits { target: 256, fields: 16, bytes: 1024 };

/// Returns every field as a name and a value.
pub fn listed(fields: &Fields) -> Vec<(Vec<u8>, Vec<u8>)> {
    fields.iter().map(|field| (field.spelled.to_vec(), field.value.to_vec())).collect()
}

/// Returns the fields that `httparse` has found, except those that frame a body.
pub fn others(headers: &[httparse::Header<'_>]) -> Vec<(Vec<u8>, Vec<u8>)> {
    let framing = [Name::ContentLength, Name::TransferEncoding];
    headers
        .iter()
        .filter(|header| !framing.contains(&Name::of(header.name.as_bytes())))
        .map(|header| (header.name.as_bytes().to_vec(), header.value.to_vec()))
        .collect()
}

/// Returns the end of the head at the start of `bytes`; `None` if the head is incomplete. Checks
/// that the result does not depend on the pieces in which the bytes arrive.
pub fn end(bytes: &[u8], limits: &Limits) -> Option<usize> {
    let whole = Head::default().end(bytes, limits);
    let mut dripping = Head::default();
    let dripped = (0..=bytes.len())
        .map(|come| dripping.end(&bytes[..come], limits))
        .find(|end| *end != Ok(None))
        .unwrap_or(Ok(None));
    assert_eq!(dripped, whole);
    whole.ok().flatten()
}

/// The result of decoding a body. `used` is the number of bytes that the body took from the input.
#[derive(Debug, PartialEq, Eq)]
pub enum Body {
    Ended { bytes: Vec<u8>, trailers: Vec<(Vec<u8>, Vec<u8>)>, used: usize },
    Unfinished { bytes: Vec<u8> },
    Broken,
}

/// Decodes a body whose bytes arrive in pieces of `piece` bytes.
pub fn decoded(framing: Framing, bytes: &[u8], piece: usize) -> Body {
    let mut decoder = Decoder::new(framing, &SMALL);
    let (mut out, mut total) = (Vec::new(), 0);
    for mut piece in bytes.chunks(piece).chain([&b""[..]]) {
        loop {
            let Ok((used, part)) = decoder.decode(piece) else {
                assert!(decoder.closed().is_err());
                return Body::Broken;
            };
            piece = &piece[used..];
            total += used;
            match part {
                Part::More => {
                    assert!(piece.is_empty());
                    break;
                }
                Part::Data(data) => {
                    assert!(!data.is_empty());
                    out.extend_from_slice(data);
                }
                Part::End(trailers) => {
                    assert!(decoder.is_ended() && decoder.closed().is_ok());
                    let trailers = trailers.as_ref().map(listed).unwrap_or_default();
                    return Body::Ended { bytes: out, trailers, used: total };
                }
            }
        }
    }
    Body::Unfinished { bytes: out }
}
