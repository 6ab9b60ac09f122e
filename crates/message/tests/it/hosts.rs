//! Tests of the host of a request (RFC 9112 §3.2), and of the four forms of a target.

use bywash_message::{Name, ParseError};

use crate::{listed, request};

fn ask(target: &str, lines: &str) -> Result<bywash_message::Request, ParseError> {
    request(format!("GET {target} HTTP/1.1\r\n{lines}\r\n"))
}

/// Checks that a request of HTTP/1.1 has exactly one `Host` (RFC 9112 §3.2).
#[test]
fn a_request_of_1_1_has_one_host() {
    assert_eq!(ask("/", "").unwrap_err(), ParseError::Host);
    assert_eq!(ask("/", "Host: a\r\nHost: a\r\n").unwrap_err(), ParseError::Host);
    assert_eq!(ask("/", "Host: a\r\nX: y\r\nhOST: b\r\n").unwrap_err(), ParseError::Host);
}

#[test]
fn a_request_of_1_0_may_be_without_one() {
    let old = |lines: &str| request(format!("GET / HTTP/1.0\r\n{lines}\r\n"));
    let without = old("").unwrap();
    assert!(without.authority.is_empty() && !without.fields.has(Name::Host));
    assert_eq!(&old("Host: a\r\n").unwrap().authority[..], b"a");
    assert_eq!(old("Host: a\r\nHost: a\r\n").unwrap_err(), ParseError::Host);
}

/// Checks that a host is a name or an address, with an optional port (RFC 3986 §3.2.2). User
/// information is refused (RFC 9110 §4.2.4).
#[test]
fn a_host_is_a_name_or_an_address_and_perhaps_a_port() {
    for host in [
        "",
        "a",
        "Shop.example:80",
        "127.0.0.1",
        "[::1]",
        "[::1]:8080",
        "a_b",
        "a:",
        "[::1]:",
        "a.",
        "a.b.:80",
        "a:0",
        "a:65535",
        "[::1]:65535",
    ] {
        let request = ask("/", &format!("Host: {host}\r\n")).unwrap();
        assert_eq!(&request.authority[..], host.as_bytes());
        assert_eq!(listed(&request.fields), [format!("Host: {host}")]);
    }
    for host in [
        "a b",
        "a/b",
        "a?b",
        "u@a",
        "a:b",
        "a,b",
        "[::1",
        "::1",
        "[::1]x",
        "[a/b]",
        "a]",
        "a\\b",
        "a#b",
        "a%41",
        "[1:2:3:4:5:6:7:8:9]",
        "[fe80::1%25eth0]",
        ":80",
        "a:123456",
        "[]",
        "[1]",
        "a:80:80",
        "\u{e4}",
        "a\tb",
        "[::1]]",
        "[[::1]",
        "a:65536",
        "a:99999",
        "[::1]:65536",
        ".",
        "..",
        ".:80",
        ".a",
        "a..b",
        "a..",
    ] {
        let error = ask("/", &format!("Host: {host}\r\n")).unwrap_err();
        assert_eq!(error, ParseError::Host, "{host}");
    }
}

/// Checks that the host of an absolute target must agree with `Host` (RFC 9112 §3.2.2).
#[test]
fn an_absolute_target_must_agree_with_host() {
    let target = |raw: &str, host: &str| {
        let request = ask(raw, &format!("Host: {host}\r\n"))?;
        Ok(request.target.path_and_query().to_owned())
    };
    assert_eq!(target("http://a/x?y", "a"), Ok("/x?y".into()));
    assert_eq!(target("HTTPS://SHOP.example", "shop.EXAMPLE"), Ok("/".into()));
    assert_eq!(target("http://a?b", "a"), Ok("/?b".into()));
    assert_eq!(target("http://a:81/", "a:81"), Ok("/".into()));
    for (raw, host) in [
        ("http://b/", "a"),
        ("http://a:81/", "a"),
        ("http://a:80/", "a"),
        ("http://u@a/", "a"),
        ("http://u@a/", "u@a"),
        ("http://", ""),
        ("http:///x", ""),
    ] {
        assert_eq!(target(raw, host), Err(ParseError::Host), "{raw} {host}");
    }
    assert_eq!(ask("http://a/", "").unwrap_err(), ParseError::Host);
    assert_eq!(target("http://a#b", "a"), Err(ParseError::Path));
}

#[test]
fn an_absolute_target_of_1_0_stands_for_a_missing_host() {
    let request = request("GET http://a:1/x HTTP/1.0\r\n\r\n").unwrap();
    assert_eq!(&request.authority[..], b"a:1");
    assert_eq!(listed(&request.fields), ["Host: a:1"]);
}

/// Checks that a target in any other form is refused (RFC 9112 §3.2.1, §3.2.3).
#[test]
fn a_target_in_another_form_is_none() {
    for target in ["a", "a:80", "ftp://a/", "http:a", "http:/a", "?x", "**", "a/b", "://a/", "http"]
    {
        assert_eq!(ask(target, "Host: a\r\n").unwrap_err(), ParseError::Syntax, "{target}");
    }
}

/// Checks that only `OPTIONS` may have the target `*` (RFC 9112 §3.2.4).
#[test]
fn only_options_asks_about_the_whole_server() {
    let options = |target: &str| {
        request(format!("OPTIONS {target} HTTP/1.1\r\nHost: a\r\n\r\n")).unwrap().target
    };
    assert!(options("*").is_asterisk());
    assert_eq!((options("*").path(), options("*").path_and_query()), ("*", "*"));
    assert!(options("http://a").is_asterisk());
    assert_eq!(options("http://a/").path(), "/");
    assert!(!options("/").is_asterisk() && !options("/*").is_asterisk());
    assert_eq!(options("http://a?x").path_and_query(), "/?x");
    assert_eq!(ask("*", "Host: a\r\n").unwrap_err(), ParseError::Syntax);
}
