//! Tests of request lines and field lines (RFC 9112 §2–§5), and of the properties that a request
//! derives from them.

use bywash_message::{Framing, Limits, ParseError, Request};
use http::{Method, Version};

use crate::{listed, old_with, request, with};

#[test]
fn a_plain_request_is_understood() {
    let request = request(
        "POST /a?b=c HTTP/1.1\r\nHost: Shop.example:80\r\nContent-Length: 3\r\nX: y\r\n\r\n",
    )
    .unwrap();
    assert_eq!(request.method, Method::POST);
    assert_eq!(request.target.path(), "/a");
    assert_eq!(request.target.path_and_query(), "/a?b=c");
    assert_eq!(request.version, Version::HTTP_11);
    assert_eq!(&request.authority[..], b"Shop.example:80");
    assert_eq!(request.framing, Framing::Length(3));
    assert_eq!(listed(&request.fields), ["Host: Shop.example:80", "X: y"]);
    assert!(request.keep_alive);
    assert!(!request.expects_continue && !request.upgrades && !request.takes_trailers);
}

/// Checks that one empty line before the request line is skipped (RFC 9112 §2.2).
#[test]
fn one_empty_line_before_the_request_line_is_skipped() {
    assert!(request("\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n").is_ok());
    assert_eq!(
        request("\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n").unwrap_err(),
        ParseError::Syntax
    );
}

/// Checks that a request line has three parts, with exactly one space between them (RFC 9112 §3).
#[test]
fn a_request_line_has_three_parts_and_one_space_between_them() {
    for line in [
        "",
        "GET",
        "GET /",
        "GET  / HTTP/1.1",
        "GET /  HTTP/1.1",
        " GET / HTTP/1.1",
        "GET / HTTP/1.1 ",
        "GET\t/ HTTP/1.1",
        "GET /\tHTTP/1.1",
        "GET / extra HTTP/1.1",
        "GET HTTP/1.1",
        "/ HTTP/1.1",
    ] {
        let head = format!("{line}\r\nHost: a\r\n\r\n");
        assert_eq!(request(head).unwrap_err(), ParseError::Syntax, "{line:?}");
    }
}

/// Checks that a method is a token of at most 32 bytes (RFC 9110 §9.1).
#[test]
fn a_method_is_a_token_of_at_most_32_bytes() {
    let ask = |method: &str| request(format!("{method} / HTTP/1.1\r\nHost: a\r\n\r\n"));
    for method in ["DELETE", "PROPFIND", "get", "M-SEARCH", "!#$%&'*+-.^_`|~", &"X".repeat(32)] {
        assert_eq!(ask(method).unwrap().method.as_str(), method);
    }
    for method in ["G(T", "GET:", "G\u{e4}T", "G\0T", "\"GET\"", &"X".repeat(33)] {
        assert_eq!(ask(method).unwrap_err(), ParseError::Syntax, "{method:?}");
    }
}

#[test]
fn connect_is_refused_whatever_it_asks_for() {
    for target in ["shop.example:80", "/", "*", "http://a/"] {
        let head = format!("CONNECT {target} HTTP/1.1\r\nHost: a\r\n\r\n");
        assert_eq!(request(head).unwrap_err(), ParseError::Method);
    }
    assert!(request("connect / HTTP/1.1\r\nHost: a\r\n\r\n").is_ok(), "another method");
}

/// Checks that versions other than 1.0 and 1.1 have an error of their own (RFC 9112 §2.3).
#[test]
fn versions_other_than_1_0_and_1_1_are_told_from_no_version_at_all() {
    let ask = |version: &str| request(format!("GET / {version}\r\nHost: a\r\n\r\n"));
    assert_eq!(ask("HTTP/1.0").unwrap().version, Version::HTTP_10);
    for version in ["HTTP/1.2", "HTTP/2.0", "HTTP/0.9", "HTTP/9.9"] {
        assert_eq!(ask(version).unwrap_err(), ParseError::Version, "{version}");
    }
    for version in ["HTTP/11", "HTTP/1.10", "http/1.1", "HTTP/1", "HTTP/2", "HTTPS/1.1", "HTTP/1.x"]
    {
        assert_eq!(ask(version).unwrap_err(), ParseError::Syntax, "{version}");
    }
}

/// Checks that other forms of a field line are refused (RFC 9112 §2.2, §5, §5.1, §5.2, RFC 9110
/// §5.5).
#[test]
fn a_field_line_has_one_form() {
    for lines in [
        "no colon\r\n",
        ": no name\r\n",
        "X : y\r\n",
        "X\t: y\r\n",
        " X: y\r\n",
        "X: y\r\n z\r\n",
        "X: y\r\n\tz\r\n",
        "X: y\nZ: y\r\n",
        "X: y\rZ: y\r\n",
        "X: y\r\r\n",
        "X: a\0b\r\n",
        "X: a\u{b}b\r\n",
        "X: \u{7f}\r\n",
        "X\0: y\r\n",
        "N\u{e4}me: y\r\n",
        "X(y): z\r\n",
        "X: y\r\n\r\nZ: y\r\n",
        "X: y",
        "\n",
    ] {
        assert_eq!(with(lines).unwrap_err(), ParseError::Syntax, "{lines:?}");
    }
}

/// Checks which bytes a field value may contain (RFC 9110 §5.5).
#[test]
fn a_value_may_hold_tabs_spaces_and_bytes_above_127_and_may_be_empty() {
    let head = b"GET / HTTP/1.1\r\nHost:a\r\nA:\r\nB: \t \r\nC:\tx\ty  z \t\r\nD: \x80\xff\r\n\r\n";
    let request = request(head).unwrap();
    assert_eq!(listed(&request.fields), ["Host: a", "A: ", "B: ", "C: x\\ty  z", "D: \\x80\\xff"]);
}

#[test]
fn a_head_must_be_whole() {
    let whole = b"GET / HTTP/1.1\r\nHost: a\r\nX: y\r\n\r\n";
    assert!(request(whole).is_ok());
    for end in 0..whole.len() {
        assert!(request(&whole[..end]).is_err(), "{end} bytes");
    }
}

#[test]
fn limits_are_the_largest_that_is_accepted() {
    let limits = Limits { target: 4, fields: 3, bytes: 30 };
    let ask = |head: &str| Request::parse(head.as_bytes(), &limits).map(|_| ());
    assert_eq!(ask("GET /abc HTTP/1.1\r\nHost: a\r\n\r\n"), Ok(()));
    assert_eq!(ask("GET /abcd HTTP/1.1\r\nHost: a\r\n\r\n"), Err(ParseError::UriTooLong));
    assert_eq!(ask("GET / HTTP/1.1\r\nHost: a\r\nX:\r\nX:\r\n\r\n"), Ok(()));
    assert_eq!(
        ask("GET / HTTP/1.1\r\nHost: a\r\nX:\r\nX:\r\nX:\r\n\r\n"),
        Err(ParseError::HeadTooLarge)
    );
    // The 30 bytes are 9 of `Host` with its line end, and 21 of `X`.
    let field = |length| format!("GET / HTTP/1.1\r\nHost: a\r\nX:{}\r\n\r\n", "y".repeat(length));
    assert_eq!(ask(&field(17)), Ok(()));
    assert_eq!(ask(&field(18)), Err(ParseError::HeadTooLarge));
}

/// Checks that a connection persists by default in HTTP/1.1, and on request in HTTP/1.0 (RFC 9112
/// §9.3).
#[test]
fn a_connection_is_kept_by_default_in_1_1_and_on_demand_in_1_0() {
    let kept = |lines| with(lines).unwrap().keep_alive;
    assert!(kept(""));
    assert!(kept("Connection: x\r\n"));
    assert!(!kept("Connection: Close\r\n"));
    assert!(!kept("Connection: x, close\r\n"));
    assert!(!kept("Connection: keep-alive\r\nConnection: ,\tCLOSE ,\r\n"));
    let kept = |lines| old_with(lines).unwrap().keep_alive;
    assert!(!kept(""));
    assert!(kept("Connection: Keep-Alive\r\n"));
    assert!(!kept("Connection: keep-alive, close\r\n"));
    assert!(!kept("Keep-Alive: timeout=5\r\n"));
}

/// Checks that an expectation other than `100-continue` is refused (RFC 9110 §10.1.1).
#[test]
fn an_expectation_is_100_continue_or_refused() {
    let body = "Content-Length: 1\r\n";
    let asked = |lines: &str| with(&format!("{body}{lines}"));
    assert!(asked("Expect: 100-Continue\r\n").unwrap().expects_continue);
    for lines in [
        "Expect: foo\r\n",
        "Expect:\r\n",
        "Expect: 100-continue, foo\r\n",
        "Expect: 100-continue\r\nExpect: x\r\n",
    ] {
        assert_eq!(asked(lines).unwrap_err(), ParseError::Expectation, "{lines}");
    }
    assert!(!with("Expect: 100-continue\r\n").unwrap().expects_continue, "there is no body");
    let empty = "Content-Length: 0\r\nExpect: 100-continue\r\n";
    assert!(!with(empty).unwrap().expects_continue);
}

/// Checks that expectations are ignored in HTTP/1.0 (RFC 9110 §10.1.1).
#[test]
fn expectations_are_ignored_in_1_0() {
    let ask = |value: &str| old_with(&format!("Content-Length: 1\r\nExpect: {value}\r\n")).unwrap();
    assert!(!ask("100-continue").expects_continue);
    assert!(!ask("foo").expects_continue);
}

/// Checks that an upgrade needs HTTP/1.1, its connection option, and a request without a body (RFC
/// 9110 §7.8).
#[test]
fn an_upgrade_needs_its_connection_option_and_1_1_and_no_body() {
    let upgrade = "Upgrade: websocket\r\n";
    let nominated = "Connection: keep-alive, Upgrade\r\n";
    assert!(with(&format!("{upgrade}{nominated}")).unwrap().upgrades);
    assert!(!with(upgrade).unwrap().upgrades);
    assert!(!with(nominated).unwrap().upgrades);
    assert!(!with(&format!("Upgrade:\r\n{nominated}")).unwrap().upgrades);
    assert!(!old_with(&format!("{upgrade}{nominated}")).unwrap().upgrades);
    let body = "Content-Length: 1\r\n";
    assert!(!with(&format!("{upgrade}{nominated}{body}")).unwrap().upgrades);
}

/// Checks that the gateway does not accept an upgrade to another version of HTTP or to TLS (RFC
/// 9113 §3.1). Requests inside the tunnel would bypass the gateway.
#[test]
fn another_http_or_tls_is_no_upgrade_that_is_carried_through() {
    for protocol in ["h2c", "H2C", "websocket, h2c", "HTTP/2.0", "TLS/1.0", "http/3 , websocket"] {
        let lines = format!("Connection: upgrade\r\nUpgrade: {protocol}\r\n");
        assert!(!with(&lines).unwrap().upgrades, "{protocol}");
    }
}

/// Checks that trailers are accepted only if `TE` and its connection option say so (RFC 9110
/// §10.1.4).
#[test]
fn trailers_are_taken_by_those_who_say_so_on_this_connection() {
    let taken = |lines| with(lines).unwrap().takes_trailers;
    assert!(taken("Connection: TE\r\nTE: trailers\r\n"));
    assert!(taken("TE: gzip;q=0.5, Trailers\r\nConnection: close, te\r\n"));
    assert!(!taken("TE: trailers\r\n"));
    assert!(!taken("Connection: te\r\nTE: gzip\r\n"));
    assert!(!taken("Connection: te\r\n"));
}
