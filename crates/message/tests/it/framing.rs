//! Tests of where a message ends (RFC 9112 §6).

use bywash_message::{Framing, Name, ParseError, Response};
use http::{Method, StatusCode};

use crate::{answer, answer_to, listed, old_with, with};

fn framing(lines: &str) -> Result<Framing, ParseError> {
    with(lines).map(|request| request.framing)
}

/// Checks that a request without framing fields has no body (RFC 9112 §6.3 item 7).
#[test]
fn a_request_that_says_nothing_has_no_body() {
    assert_eq!(framing(""), Ok(Framing::None));
}

/// Checks that a length is accepted only if it is stated once, as one number (RFC 9112 §6.2, §6.3
/// item 5).
#[test]
fn a_length_is_one_number_said_once() {
    let length = |value: &str| framing(&format!("Content-Length: {value}\r\n"));
    assert_eq!(length("0"), Ok(Framing::Length(0)));
    assert_eq!(length("0042"), Ok(Framing::Length(42)));
    assert_eq!(length("9223372036854775807"), Ok(Framing::Length(i64::MAX as u64)));
    for value in [
        "+2",
        "-2",
        "0x2",
        "2, 2",
        "2,",
        "2 2",
        "two",
        "",
        "2;",
        "2.0",
        "\"2\"",
        "9223372036854775808",
        "18446744073709551617",
        "99999999999999999999",
        "\u{663}",
    ] {
        assert_eq!(length(value), Err(ParseError::Framing), "{value:?}");
    }
    let twice = |one, two| framing(&format!("Content-Length: {one}\r\nContent-Length: {two}\r\n"));
    assert_eq!(twice(2, 3), Err(ParseError::Framing));
    assert_eq!(twice(2, 2), Err(ParseError::Framing));
}

/// Checks that a transfer coding is accepted only if it is one `chunked`, stated once (RFC 9112
/// §6.1).
#[test]
fn a_transfer_coding_is_one_chunked_said_once() {
    let coded = |value: &str| framing(&format!("Transfer-Encoding: {value}\r\n"));
    assert_eq!(coded("chunked"), Ok(Framing::Chunked));
    assert_eq!(coded("\tCHUNKED "), Ok(Framing::Chunked));
    for value in [
        "gzip",
        "chunked, identity",
        "xchunked",
        "gzip, chunked",
        ",chunked",
        "chunked,",
        "chunked, chunked",
        "\"chunked\"",
        "chunked;x",
        "identity",
        "",
        "chunked\u{85}",
    ] {
        assert_eq!(coded(value), Err(ParseError::Framing), "{value:?}");
    }
    let line = "Transfer-Encoding: chunked\r\n";
    assert_eq!(framing(&format!("{line}{line}")), Err(ParseError::Framing));
    assert_eq!(
        framing(&format!("{line}Transfer-Encoding: identity\r\n")),
        Err(ParseError::Framing)
    );
    assert_eq!(framing(&format!("Transfer-Encoding:\r\n{line}")), Err(ParseError::Framing));
}

/// Checks that a length next to a transfer coding is refused (RFC 9112 §6.1). Such a message is
/// broken, or an attempt at request smuggling.
#[test]
fn a_length_beside_a_transfer_coding_is_refused() {
    for lines in [
        "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: x\r\n",
    ] {
        assert_eq!(framing(lines), Err(ParseError::Framing), "{lines}");
        assert_eq!(answer("200 OK", lines).unwrap_err(), ParseError::Framing, "{lines}");
    }
}

/// Checks that a message of HTTP/1.0 with a transfer coding is refused (RFC 9112 §6.1).
#[test]
fn http_1_0_has_no_transfer_coding() {
    let error = old_with("Transfer-Encoding: chunked\r\n").unwrap_err();
    assert_eq!(error, ParseError::Framing);
}

/// Checks that aliases of framing fields are refused, because CGI maps an alias to the same
/// variable as the real field.
#[test]
fn aliases_of_framing_are_refused() {
    for name in ["Content_Length", "content.length", "Transfer_Encoding", "TRANSFER.ENCODING"] {
        let line = format!("{name}: 0\r\n");
        assert_eq!(framing(&line), Err(ParseError::Framing), "{name}");
        assert_eq!(answer("200 OK", &line).unwrap_err(), ParseError::Framing, "{name}");
    }
    assert_eq!(framing("Content-Lengths: 0\r\n"), Ok(Framing::None));
}

#[test]
fn what_frames_a_message_is_taken_out_of_its_fields() {
    let request = with("Content-Length: 3\r\nX: y\r\n").unwrap();
    assert_eq!(listed(&request.fields), ["Host: a", "X: y"]);
    assert!(!request.fields.has(Name::ContentLength));
    let answer = answer("200 OK", "Transfer-Encoding: chunked\r\nX: y\r\n").unwrap();
    assert_eq!(listed(&answer.fields), ["X: y"]);
}

/// Checks how the end of a response is recognised (RFC 9112 §6.3 items 4 to 8).
#[test]
fn an_answer_ends_with_its_length_its_last_chunk_or_its_connection() {
    let framing = |lines| answer("200 OK", lines).map(|answer| (answer.framing, answer.keep_alive));
    assert_eq!(framing("Content-Length: 3\r\n"), Ok((Framing::Length(3), true)));
    assert_eq!(framing("Transfer-Encoding: Chunked\r\n"), Ok((Framing::Chunked, true)));
    assert_eq!(framing(""), Ok((Framing::UntilClose, false)));
    for lines in [
        "Content-Length: 3\r\nContent-Length: 3\r\n",
        "Content-Length: 3, 3\r\n",
        "Content-Length: -1\r\n",
        "Transfer-Encoding: gzip\r\n",
        "Transfer-Encoding: gzip, chunked\r\n",
    ] {
        assert_eq!(framing(lines), Err(ParseError::Framing), "{lines}");
    }
}

/// Checks that a response without a body keeps the length that its body would have had (RFC 9112
/// §6.3 item 1, RFC 9110 §8.6).
#[test]
fn an_answer_without_a_body_keeps_the_length_that_it_would_have_had() {
    let length = "Content-Length: 3\r\n";
    for answer in [answer_to(&Method::HEAD, "200 OK", length), answer("304 Not Modified", length)] {
        let answer = answer.unwrap();
        assert_eq!(answer.framing, Framing::None);
        assert_eq!(listed(&answer.fields), ["Content-Length: 3"]);
    }
    let chunked = answer_to(&Method::HEAD, "200 OK", "Transfer-Encoding: chunked\r\n").unwrap();
    assert_eq!((chunked.framing, chunked.fields.len()), (Framing::None, 0));
    let twice = answer_to(&Method::HEAD, "200 OK", &format!("{length}{length}"));
    assert_eq!(twice.unwrap_err(), ParseError::Framing);
}

/// Checks that the connection is closed, because a body that the application sends nevertheless
/// would be taken for the next response.
#[test]
fn a_connection_is_not_used_again_where_a_body_might_follow_that_there_must_not_be() {
    let kept = |answer: Result<Response, ParseError>| answer.unwrap().keep_alive;
    for lines in ["", "Content-Length: 0\r\n", "Content-Length: 3\r\n"] {
        assert!(!kept(answer_to(&Method::HEAD, "200 OK", lines)), "{lines}");
        let none = lines != "Content-Length: 3\r\n";
        assert_eq!(kept(answer("204 No Content", lines)), none, "{lines}");
        assert_eq!(kept(answer("304 Not Modified", lines)), none, "{lines}");
    }
    assert!(!kept(answer("304 Not Modified", "Transfer-Encoding: chunked\r\n")));
    assert!(kept(answer("200 OK", "Content-Length: 0\r\n")));
}

/// Checks that a 204 and a 1xx have neither a length nor a transfer coding (RFC 9110 §8.6, RFC 9112
/// §6.1).
#[test]
fn a_204_and_a_1xx_have_neither_a_length_nor_a_transfer_coding() {
    for status in ["100 Continue", "101 Switching Protocols", "103 Early Hints", "204 No Content"] {
        let answer_with = |lines| answer(status, lines);
        let plain = answer_with("Content-Length: 0\r\nX: y\r\n").unwrap();
        assert_eq!(plain.framing, Framing::None);
        assert_eq!(listed(&plain.fields), ["X: y"]);
        let error = answer_with("Transfer-Encoding: chunked\r\n").unwrap_err();
        assert_eq!(error, ParseError::Framing, "{status}");
    }
    assert_eq!(answer("204", "").unwrap().status, StatusCode::NO_CONTENT);
}
