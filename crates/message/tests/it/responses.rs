//! Tests of status lines (RFC 9112 §4), and of the persistence of the connection of a response.

use bywash_message::{Framing, Limits, ParseError, Response};
use http::{Method, Version};

use crate::{LIMITS, answer};

fn parse(head: &[u8]) -> Result<Response, ParseError> {
    Response::parse(head, &Method::GET, &LIMITS)
}

#[test]
fn a_plain_answer_is_understood() {
    let answer = parse(b"HTTP/1.1 404 Nothing here\r\nContent-Length: 5\r\n\r\n").unwrap();
    assert_eq!(answer.status.as_u16(), 404);
    assert_eq!(answer.reason, b"Nothing here");
    assert_eq!((answer.version, answer.framing), (Version::HTTP_11, Framing::Length(5)));
}

/// Checks that a reason phrase may be absent, and may contain any text (RFC 9112 §4).
#[test]
fn a_reason_may_be_absent_and_hold_any_text() {
    let reason = |line: &[u8]| parse(&[line, b"\r\n\r\n"].concat()).unwrap().reason;
    assert_eq!(reason(b"HTTP/1.1 200"), b"");
    assert_eq!(reason(b"HTTP/1.1 200 "), b"");
    assert_eq!(reason(b"HTTP/1.1 200 OK"), b"", "the usual one is not kept");
    assert_eq!(reason(b"HTTP/1.1 200 Fine\t\xe9 "), b"Fine\t\xe9 ");
    assert_eq!(reason(b"HTTP/1.1 299 OK"), b"OK");
}

#[test]
fn a_status_line_has_one_form() {
    for line in [
        "",
        "HTTP/1.1",
        "HTTP/1.1 ",
        "HTTP/1.1 20",
        "HTTP/1.1 2000",
        "HTTP/1.1 20x OK",
        "HTTP/1.1  200 OK",
        "HTTP/1.1\t200 OK",
        "HTTP/1.1 200\tOK",
        "HTTP/1.1 099 Low",
        "HTTP/1.1 600 High",
        "HTTP/1.1 999 High",
        "HTTP/1.1 +20 OK",
        "HTTP/1.1 200 a\0b",
        "HTTP/1.1 200 a\u{7f}",
        "http/1.1 200 OK",
        "HTTP/1 200 OK",
        " HTTP/1.1 200 OK",
        "ICY 200 OK",
    ] {
        let error = parse(format!("{line}\r\n\r\n").as_bytes()).unwrap_err();
        assert_eq!(error, ParseError::Syntax, "{line:?}");
    }
    assert_eq!(parse(b"HTTP/2.0 200 OK\r\n\r\n").unwrap_err(), ParseError::Version);
    assert_eq!(parse(b"HTTP/1.2 200 OK\r\n\r\n").unwrap_err(), ParseError::Version);
}

/// Checks that an empty line before a response is refused: RFC 9112 §2.2 allows one before requests
/// only.
#[test]
fn nothing_is_skipped_before_an_answer() {
    assert_eq!(parse(b"\r\nHTTP/1.1 200 OK\r\n\r\n").unwrap_err(), ParseError::Syntax);
}

#[test]
fn bare_line_ends_and_folded_lines_are_refused() {
    for head in [
        &b"HTTP/1.1 200 OK\n\n"[..],
        b"HTTP/1.1 200 OK\r\nX: y\n\r\n",
        b"HTTP/1.1 200 OK\r\nX: y\r\n z\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX: y\rz\r\n\r\n",
        b"HTTP/1.1 200 O\rK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX: y\r\n",
    ] {
        assert_eq!(parse(head).unwrap_err(), ParseError::Syntax, "{:?}", head.escape_ascii());
    }
}

#[test]
fn an_answer_has_limits_too() {
    let limits = Limits { target: 20, fields: 1, bytes: 8 };
    let ask = |head: &str| Response::parse(head.as_bytes(), &Method::GET, &limits).map(|_| ());
    assert_eq!(ask("HTTP/1.1 200 OK\r\nX: yyy\r\n\r\n"), Ok(()));
    assert_eq!(ask("HTTP/1.1 200 OK\r\nX: yyyy\r\n\r\n"), Err(ParseError::HeadTooLarge));
    assert_eq!(ask("HTTP/1.1 200 OK\r\nX:\r\nX:\r\n\r\n"), Err(ParseError::HeadTooLarge));
    let reason = |length| format!("HTTP/1.1 200 {}\r\n\r\n", "x".repeat(length));
    assert_eq!(ask(&reason(20 + 42 - 13)), Ok(()));
    assert_eq!(ask(&reason(20 + 43 - 13)), Err(ParseError::HeadTooLarge));
}

/// Checks that a connection persists only if the response allows it and has an end (RFC 9112 §9.3).
#[test]
fn a_connection_is_kept_if_the_answer_says_so_and_has_an_end() {
    let kept = |version: &str, lines: &str| {
        let head = format!("HTTP/{version} 200 OK\r\nContent-Length: 0\r\n{lines}\r\n");
        parse(head.as_bytes()).unwrap().keep_alive
    };
    assert!(kept("1.1", ""));
    assert!(!kept("1.1", "Connection: close\r\n"));
    assert!(!kept("1.0", ""));
    assert!(kept("1.0", "Connection: keep-alive\r\n"));
    assert!(!answer("200 OK", "").unwrap().keep_alive);
}

/// Checks that an application may name any of its own fields in `Connection`.
#[test]
fn an_answer_may_nominate_any_field() {
    let lines = "Connection: set-cookie, content-length, via\r\nContent-Length: 0\r\n";
    assert!(answer("200 OK", lines).is_ok());
}
