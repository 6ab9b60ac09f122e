//! Tests of the search for the end of a head that is still arriving.

use bywash_message::{Head, Limits, ParseError};

use crate::LIMITS;

fn end(bytes: impl AsRef<[u8]>) -> Result<Option<usize>, ParseError> {
    Head::default().end(bytes.as_ref(), &LIMITS)
}

/// Feeds the bytes one at a time. Returns the number of bytes fed, and the result.
fn end_of_drips(bytes: &[u8], limits: &Limits) -> (usize, Result<Option<usize>, ParseError>) {
    let mut head = Head::default();
    for come in 0..=bytes.len() {
        match head.end(&bytes[..come], limits) {
            Ok(None) => {}
            ended => return (come, ended),
        }
    }
    (bytes.len(), Ok(None))
}

#[test]
fn a_head_ends_with_its_blank_line() {
    assert_eq!(end("GET / HTTP/1.1\r\nHost: a\r\n\r\nbody"), Ok(Some(27)));
    assert_eq!(end("GET / HTTP/1.1\r\n\r\n"), Ok(Some(18)));
    assert_eq!(end("GET / HTTP/1.1\r\nHost: a\r\n\r"), Ok(None));
    assert_eq!(end(""), Ok(None));
}

/// Checks that one empty line before a head counts as part of the head (RFC 9112 §2.2).
#[test]
fn one_empty_line_before_it_is_part_of_it() {
    assert_eq!(end("\r\nGET / HTTP/1.1\r\n\r\n"), Ok(Some(20)));
    assert_eq!(end("\r\n"), Ok(None));
    assert_eq!(end("\r\n\r\n"), Err(ParseError::Syntax));
}

#[test]
fn what_can_become_no_head_is_refused_at_once() {
    for bytes in [
        &b"GET / HTTP/1.1\n"[..],
        b"\n",
        b"GET /\rX",
        b"GET /\0",
        b"GET / HTTP/1.1\r\nHost: a\n",
        b"GET / HTTP/1.1\r\nHost\0",
        b"GET / HTTP/1.1\r\nHost: a\r\n\rx",
        b"\x16\x03\x01",
        b" GET",
        b"\r\n ",
    ] {
        assert_eq!(end(bytes), Err(ParseError::Syntax), "{:?}", bytes.escape_ascii());
        let (come, ended) = end_of_drips(bytes, &LIMITS);
        assert_eq!((come, ended), (bytes.len().min(come), Err(ParseError::Syntax)));
    }
    assert_eq!(end_of_drips(b"\x16\x03\x01", &LIMITS).0, 1);
}

#[test]
fn a_head_is_refused_as_soon_as_it_is_beyond_the_limits() {
    let limits = Limits { target: 10, fields: 9, bytes: 20 };
    // The 52 bytes are 32 of the method, 10 of the target, 8 of the version and two spaces.
    let line = "x".repeat(52);
    assert_eq!(end_of_drips(line.as_bytes(), &limits), (52, Ok(None)));
    assert_eq!(
        end_of_drips(format!("{line}x").as_bytes(), &limits),
        (53, Err(ParseError::UriTooLong))
    );
    let late = |length: usize| format!("\r\n{}", "x".repeat(length));
    assert_eq!(end_of_drips(late(52).as_bytes(), &limits), (54, Ok(None)));
    assert_eq!(end_of_drips(late(53).as_bytes(), &limits), (55, Err(ParseError::UriTooLong)));
    let answer = format!("HTTP/1.1 200 {line}");
    assert_eq!(end_of_drips(answer.as_bytes(), &limits), (53, Err(ParseError::HeadTooLarge)));
    let fields = |length: usize| format!("GET / HTTP/1.1\r\nX:{}\r\n\r\n", "y".repeat(length));
    assert_eq!(end_of_drips(fields(16).as_bytes(), &limits), (38, Ok(Some(38))));
    // After the 19th byte of the line, its end no longer fits into 20 bytes.
    assert_eq!(end_of_drips(fields(17).as_bytes(), &limits), (35, Err(ParseError::HeadTooLarge)));
}

#[test]
fn what_is_behind_a_head_counts_for_nothing() {
    let limits = Limits { target: 10, fields: 9, bytes: 20 };
    let head = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    let bytes = [&head[..], &[0; 100]].concat();
    assert_eq!(Head::default().end(&bytes, &limits), Ok(Some(head.len())));
}
