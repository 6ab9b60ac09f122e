//! Tests of fields that belong to one connection (RFC 9110 §7.6.1).

use bywash_message::{Fields, ParseError};

use crate::{answer, answer_to, listed, with};

fn left(lines: &str) -> Vec<String> {
    let mut fields = with(lines).unwrap().fields;
    fields.remove_hop_by_hop();
    listed(&fields)
}

#[test]
fn what_connection_names_goes_with_it() {
    let lines = "X-Hop: 1\r\nConnection: keep-alive, x-HOP , ,x-other\r\nX-Other: 2\r\n\
                 Connection: X-Third\r\nX-Third: 3\r\nX-End: 4\r\nX-Hop: 5\r\n";
    assert_eq!(left(lines), ["Host: a", "X-End: 4"]);
}

#[test]
fn each_field_of_a_connection_goes_whether_it_is_named_or_not() {
    for name in ["Connection", "Keep-Alive", "Proxy-Connection", "TE", "Upgrade", "HTTP2-Settings"]
    {
        assert_eq!(left(&format!("{name}: x\r\nX-End: 4\r\n")), ["Host: a", "X-End: 4"], "{name}");
    }
    let mut fields = Fields::new();
    fields.push(b"Transfer-Encoding", b"chunked");
    fields.remove_hop_by_hop();
    assert!(fields.is_empty());
}

#[test]
fn other_fields_stay() {
    let lines = "Trailer: x\r\nProxy-Authorization: y\r\nExpect: 100-continue\r\n";
    assert_eq!(left(lines).len(), 4);
}

#[test]
fn a_byte_that_is_no_text_beside_a_name_hides_nothing() {
    let head = b"GET / HTTP/1.1\r\nHost: a\r\nConnection: x-hop, \xff\r\nX-Hop: 1\r\n\r\n";
    let mut fields = crate::request(head).unwrap().fields;
    fields.remove_hop_by_hop();
    assert_eq!(listed(&fields), ["Host: a"]);
}

/// Checks that the removal of certain fields is refused. It would change to whom the request is
/// addressed, how long it is, or where it comes from (CVE-2021-32813, CVE-2022-31813,
/// CVE-2024-45410).
#[test]
fn a_request_cannot_have_fields_removed_that_matter() {
    for name in [
        "Host",
        "Cookie",
        "content-length",
        "Content-Type",
        "Content-Encoding",
        "Authorization",
        "Cache-Control",
        "Forwarded",
        "X-Forwarded-For",
        "X_Forwarded_For",
        "x-forwarded-host",
        "X-Forwarded-Port",
        "X-Forwarded-Proto",
        "X-Forwarded-Prefix",
        "x.real.ip",
        "X-Request-Id",
        "Via",
        "bywash-class",
        "BYWASH_LEVEL",
    ] {
        for lines in [
            format!("Connection: {name}\r\n"),
            format!("Connection: close, {name}\r\n"),
            format!("Connection: x\r\nConnection: ,{name},\r\n"),
        ] {
            assert_eq!(with(&lines).unwrap_err(), ParseError::Nominated, "{lines}");
        }
    }
}

#[test]
fn as_many_options_as_nobody_needs_are_refused() {
    let options = |count: usize| format!("Connection: {}\r\n", vec!["x"; count].join(","));
    assert!(with(&options(32)).is_ok());
    assert_eq!(with(&options(33)).unwrap_err(), ParseError::Nominated);
    assert_eq!(with(&options(32).repeat(2)).unwrap_err(), ParseError::Nominated);
    assert_eq!(answer("200 OK", &options(33)).unwrap_err(), ParseError::Nominated);
}

#[test]
fn the_length_of_an_answer_stays_whoever_names_it() {
    let lines = "Connection: X-Hop, content-length\r\nX-Hop: 1\r\nContent-Length: 3\r\n";
    let mut fields = answer_to(&http::Method::HEAD, "200 OK", lines).unwrap().fields;
    fields.remove_hop_by_hop();
    assert_eq!(listed(&fields), ["Content-Length: 3"]);
}
