//! Tests of the decoding of bodies (RFC 9112 §6.3, §7.1).

use bywash_message::{Decoder, Fields, Framing, Limits, ParseError, Part};

use crate::{LIMITS, listed};

/// A decoded body, with the number of bytes that the decoder consumed.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Body {
    pub(crate) data: Vec<u8>,
    pub(crate) trailers: Vec<String>,
    pub(crate) used: usize,
    pub(crate) ended: bool,
}

/// Decodes a body from pieces that arrive one after the other.
pub(crate) fn decode<'a>(
    framing: Framing,
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> Result<Body, ParseError> {
    decode_within(&LIMITS, framing, pieces)
}

fn decode_within<'a>(
    limits: &Limits,
    framing: Framing,
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> Result<Body, ParseError> {
    let mut decoder = Decoder::new(framing, limits);
    let mut body = Body::default();
    // The empty piece at the end ends a body that needs no further byte.
    for mut piece in pieces.into_iter().chain([&b""[..]]) {
        loop {
            let (used, part) = decoder.decode(piece)?;
            piece = &piece[used..];
            body.used += used;
            match part {
                Part::More => {
                    assert!(piece.is_empty(), "{} bytes are left", piece.len());
                    break;
                }
                Part::Data(data) => {
                    assert!(!data.is_empty());
                    body.data.extend_from_slice(data);
                }
                Part::End(trailers) => {
                    assert!(decoder.is_ended());
                    assert_eq!((decoder.left(), decoder.closed()), (Some(0), Ok(())));
                    let again = decoder.decode(piece);
                    assert!(matches!(again, Ok((0, Part::End(None)))), "{again:?}");
                    body.trailers = trailers.as_ref().map(listed).unwrap_or_default();
                    body.ended = true;
                    return Ok(body);
                }
            }
        }
    }
    Ok(body)
}

fn chunks(bytes: impl AsRef<[u8]>) -> Result<Body, ParseError> {
    decode(Framing::Chunked, [bytes.as_ref()])
}

fn ended(data: &str, used: usize) -> Body {
    Body { data: data.into(), used, ended: true, ..Body::default() }
}

#[test]
fn no_body_uses_no_byte() {
    for framing in [Framing::None, Framing::Length(0)] {
        assert_eq!(decode(framing, [&b"GET /next"[..]]), Ok(ended("", 0)));
        assert_eq!(decode(framing, [&b""[..]]), Ok(ended("", 0)));
    }
}

#[test]
fn a_body_with_a_length_ends_with_its_last_byte() {
    assert_eq!(decode(Framing::Length(3), [&b"abcGET"[..]]), Ok(ended("abc", 3)));
    let mut decoder = Decoder::new(Framing::Length(3), &LIMITS);
    assert_eq!(decoder.left(), Some(3));
    assert!(matches!(decoder.decode(b"a"), Ok((1, Part::Data(b"a")))));
    assert!(matches!(decoder.decode(b""), Ok((0, Part::More))));
    assert_eq!((decoder.left(), decoder.is_ended()), (Some(2), false));
    assert!(matches!(decoder.decode(b"bcd"), Ok((2, Part::Data(b"bc")))));
    assert!(decoder.is_ended(), "although nobody has asked");
}

#[test]
fn a_body_until_the_connection_ends_ends_with_it() {
    let mut decoder = Decoder::new(Framing::UntilClose, &LIMITS);
    assert!(matches!(decoder.decode(b"abc"), Ok((3, Part::Data(b"abc")))));
    assert!(matches!(decoder.decode(b""), Ok((0, Part::More))));
    assert_eq!((decoder.is_ended(), decoder.left()), (false, None));
    assert_eq!(decoder.closed(), Ok(()));
    assert!(decoder.is_ended());
}

#[test]
fn a_body_that_breaks_off_is_a_fault_and_stays_one() {
    for (framing, begin) in [
        (Framing::Length(3), &b"ab"[..]),
        (Framing::Chunked, b""),
        (Framing::Chunked, b"3\r\nabc\r\n"),
        (Framing::Chunked, b"3\r\nab"),
        (Framing::Chunked, b"0\r\n"),
        (Framing::Chunked, b"0\r\nX: y\r\n"),
    ] {
        let mut decoder = Decoder::new(framing, &LIMITS);
        let mut rest = begin;
        while !rest.is_empty() {
            rest = &rest[decoder.decode(rest).unwrap().0..];
        }
        assert_eq!(decoder.closed(), Err(ParseError::Body));
        assert_eq!(decoder.decode(b"").map(|_| ()), Err(ParseError::Body));
        assert!(!decoder.is_ended());
        assert_eq!(decoder.closed(), Err(ParseError::Body));
    }
}

#[test]
fn chunks_are_joined() {
    assert_eq!(chunks("3\r\nabc\r\n2\r\nde\r\n0\r\n\r\nGET"), Ok(ended("abcde", 20)));
    assert_eq!(chunks("a\r\n0123456789\r\n000\r\n\r\n").unwrap().data, b"0123456789");
    assert_eq!(chunks("0000000000000001\r\nx\r\n0\r\n\r\n").unwrap().data, b"x");
    assert!(!chunks("3\r\nabc\r\n0\r\n").unwrap().ended);
}

/// Checks that the extensions of chunks are dropped (RFC 9112 §7.1.1).
#[test]
fn extensions_are_dropped() {
    for head in ["3;a", "3;a=b", "3;a=\"x;\t\u{e9}\"", "3 ;a", "3\t ; a = b ;c", "3;"] {
        let body = chunks(format!("{head}\r\nabc\r\n0;last\r\n\r\n")).unwrap();
        assert_eq!((&body.data[..], body.ended), (&b"abc"[..], true), "{head}");
    }
}

#[test]
fn broken_chunks_are_refused() {
    for bytes in [
        "x\r\n",
        "\r\n",
        ";\r\n",
        " 3\r\n",
        "-3\r\n",
        "+3\r\n",
        "0x3\r\n",
        "3 \r\n",
        "3 \u{b}\r\n",
        "3\n",
        "3\rabc",
        "3;\n\r\n",
        "3;a\rb",
        "3;\0\r\n",
        "3\r\nabcd\r\n",
        "3\r\nabc0\r\n",
        "3\r\nabc\n0",
        "3\r\nabc\r\r",
        "00000000000000003\r\n",
        "10000000000000003\r\n",
        "8000000000000000\r\n",
        "ffffffffffffffff\r\n",
        "0\r\nno trailer\r\n\r\n",
        "0\r\nX: y\n\r\n",
        "0\r\n\n",
        "0\r\n X: y\r\n\r\n",
        "0\r\nX : y\r\n\r\n",
        "0\r\nX: \0\r\n\r\n",
        "0\r\nTransfer_Encoding: y\r\n\r\n",
    ] {
        assert_eq!(chunks(bytes), Err(ParseError::Body), "{bytes:?}");
    }
    assert!(chunks("7fffffffffffffff\r\nabc").is_ok());
}

#[test]
fn extensions_are_worth_no_more_than_their_chunks() {
    let chunk = |extension: usize| format!("1;{}\r\nx\r\n", "e".repeat(extension - 1));
    assert!(chunks(chunk(4096)).is_ok());
    assert_eq!(chunks(chunk(4097)), Err(ParseError::Body), "one alone");
    assert_eq!(chunks(format!("1{}", " ".repeat(4097))), Err(ParseError::Body));
    // The allowance of each one-byte chunk is 18 bytes. All chunks together may exceed it by 16
    // KiB.
    assert!(chunks(chunk(18).repeat(10_000)).is_ok());
    assert!(chunks(chunk(19).repeat(16 * 1024)).is_ok());
    assert_eq!(chunks(chunk(19).repeat(16 * 1024 + 1)), Err(ParseError::Body));
    // Senders of one-byte chunks are slow, but they are not attackers.
    assert!(chunks("1\r\nx\r\n".repeat(100_000)).is_ok());
}

/// Checks that the trailers are returned with the end of the body (RFC 9112 §7.1.2).
#[test]
fn trailers_come_with_the_end() {
    let body = chunks("0\r\nGrpc-Status: 0\r\nX-Sum:  abc \r\n\r\nGET").unwrap();
    assert_eq!(body.trailers, ["Grpc-Status: 0", "X-Sum: abc"]);
    assert_eq!((body.ended, body.used), (true, 35));
    for name in ["User-Agent", "Accept-Language", "Sec-Fetch-Dest", "Proxy-Status"] {
        let body = chunks(format!("0\r\n{name}: x\r\n\r\n")).unwrap();
        assert_eq!(body.trailers, [format!("{name}: x")]);
    }
}

/// Checks that trailers contain no fields that frame, route, authenticate or change the
/// interpretation of a message (RFC 9110 §6.5.1).
#[test]
fn what_belongs_in_a_head_is_not_taken_from_trailers() {
    for name in [
        "Content-Length",
        "Transfer-Encoding",
        "Host",
        "Connection",
        "TE",
        "Trailer",
        "Upgrade",
        "Authorization",
        "Cookie",
        "Set-Cookie",
        "Content-Type",
        "Content-Encoding",
        "Content_Range",
        "Cache-Control",
        "Expect",
        "X-Forwarded-For",
        "X_Forwarded_For",
        "Forwarded",
        "Via",
        "bywash-class",
        "Bywash_Level",
        "WWW-Authenticate",
        "Location",
        "Referer",
        "If-Match",
        "Vary",
    ] {
        let body = chunks(format!("0\r\n{name}: x\r\n\r\n")).unwrap();
        assert_eq!((body.trailers, body.ended), (Vec::new(), true), "{name}");
        let body = chunks(format!("0\r\nA: 1\r\n{name}: x\r\nB: 2\r\n\r\n")).unwrap();
        assert_eq!(body.trailers, ["A: 1", "B: 2"], "{name}");
    }
}

#[test]
fn trailers_have_the_limits_of_a_head() {
    let limits = Limits { target: 9, fields: 2, bytes: 12 };
    let trailers = |lines: &str| {
        let bytes = format!("0\r\n{lines}\r\n");
        let whole = decode_within(&limits, Framing::Chunked, [bytes.as_bytes()]);
        let dripped = decode_within(&limits, Framing::Chunked, bytes.as_bytes().chunks(1));
        assert_eq!(whole, dripped);
        whole.map(|body| body.trailers.len())
    };
    assert_eq!(trailers("A: 1\r\nB: 2\r\n"), Ok(2));
    assert_eq!(trailers("A: 1\r\nB: 23\r\n"), Err(ParseError::Body));
    assert_eq!(trailers("A:\r\nB:\r\nC:\r\n"), Err(ParseError::Body));
    let endless = decode_within(&limits, Framing::Chunked, [&b"0\r\n"[..], &[b'x'; 100]]);
    assert_eq!(endless, Err(ParseError::Body));
}

#[test]
fn trailers_are_written_as_they_are_read() {
    let mut trailers = Fields::new();
    trailers.push(b"Grpc-Status", b"0");
    let mut out = Vec::new();
    bywash_message::write_chunk(&mut out, b"abc");
    bywash_message::write_last_chunk(&mut out, Some(&trailers));
    assert_eq!(out, b"3\r\nabc\r\n0\r\nGrpc-Status: 0\r\n\r\n");
    assert_eq!(chunks(out).unwrap().trailers, ["Grpc-Status: 0"]);
}
