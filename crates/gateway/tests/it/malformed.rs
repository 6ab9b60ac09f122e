//! Tests of messages that are refused: the client gets a response, its connection ends, and nothing
//! of the message reaches the upstream.

use crate::setup::{Running, Setup, get};
use crate::upstream::Upstream;

fn gateway() -> (Upstream, Running) {
    let upstream = Upstream::echo();
    let gateway = Setup::before(&upstream).start();
    (upstream, gateway)
}

/// Checks that `message` is refused with `status`, and that the request behind it is not processed.
fn is_refused(message: impl AsRef<[u8]>, status: u16) {
    let message = message.as_ref();
    let shown = String::from_utf8_lossy(&message[..message.len().min(200)]).into_owned();
    let (upstream, gateway) = gateway();
    let mut client = gateway.client();
    // The message may be refused before it has been read completely.
    let _ = client.try_send([message, get("/behind").as_bytes()].concat());
    let answer = client.answer().unwrap_or_else(|broken| panic!("{broken:?} after {shown:?}"));
    assert_eq!(answer.status(), Some(status), "{shown:?}");
    assert!(client.is_closed(), "it goes on after {shown:?}");
    assert_eq!((upstream.accepted(), upstream.received()), (0, String::new()), "{shown:?}");
    // The gateway reads on for a while until the client has closed.
    drop(client);
    gateway.waits_for("connections", 0);
    assert_eq!(gateway.get("/next").text(), "/next");
}

#[test]
fn without_a_host() {
    is_refused("GET / HTTP/1.1\r\n\r\n", 400);
}

#[test]
fn with_two_hosts() {
    is_refused("GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", 400);
    is_refused("GET / HTTP/1.1\r\nHost: a\r\nX: y\r\nhOST: b\r\n\r\n", 400);
    is_refused("GET / HTTP/1.0\r\nHost: a\r\nHost: b\r\n\r\n", 400);
}

#[test]
fn with_a_host_that_is_none() {
    for host in ["a b", "a/b", "a?b", "user@a", "a,b", "a:port", "a\\b", "a#b", "[::1"] {
        is_refused(format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n"), 400);
    }
}

#[test]
fn with_a_request_line_for_another_host() {
    is_refused("GET http://evil.example/ HTTP/1.1\r\nHost: shop.example\r\n\r\n", 400);
    is_refused("GET http://shop.example:81/ HTTP/1.1\r\nHost: shop.example\r\n\r\n", 400);
    is_refused("GET http://u@shop.example/ HTTP/1.1\r\nHost: shop.example\r\n\r\n", 400);
    is_refused("GET http://shop.example/ HTTP/1.1\r\n\r\n", 400);
}

#[test]
fn with_a_target_that_is_only_for_connect() {
    is_refused("GET shop.example HTTP/1.1\r\nHost: shop.example\r\n\r\n", 400);
    is_refused("GET shop.example:80 HTTP/1.1\r\nHost: shop.example:80\r\n\r\n", 400);
}

#[test]
fn with_the_method_connect() {
    is_refused("CONNECT shop.example:80 HTTP/1.1\r\nHost: shop.example:80\r\n\r\n", 405);
    is_refused("CONNECT / HTTP/1.1\r\nHost: a\r\n\r\n", 405);
}

#[test]
fn with_an_expectation_that_nobody_knows() {
    is_refused("GET / HTTP/1.1\r\nHost: a\r\nExpect: foo\r\n\r\n", 417);
    is_refused("GET / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue, foo\r\n\r\n", 417);
    is_refused("GET / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nExpect: foo\r\n\r\n", 417);
}

#[test]
fn with_fields_nominated_that_must_stay() {
    for name in ["Host", "Cookie", "content-length", "Authorization", "X-Forwarded-For"] {
        is_refused(format!("GET / HTTP/1.1\r\nHost: a\r\nConnection: close, {name}\r\n\r\n"), 400);
    }
    is_refused("GET / HTTP/1.1\r\nHost: a\r\nConnection: x\r\nConnection: cookie\r\n\r\n", 400);
}

#[test]
fn with_fields_nominated_behind_a_byte_that_is_no_text() {
    is_refused(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: cookie, \xff\r\n\r\n", 400);
}

#[test]
fn with_odd_transfer_codings() {
    for coding in [
        "gzip",
        "chunked, identity",
        "xchunked",
        "chunked\x0b",
        "gzip, chunked",
        ",chunked",
        "chunked, chunked",
        "\"chunked\"",
    ] {
        is_refused(
            format!("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: {coding}\r\n\r\n0\r\n\r\n"),
            400,
        );
    }
}

#[test]
fn with_two_transfer_codings() {
    let field = "Transfer-Encoding: chunked\r\n";
    is_refused(format!("POST / HTTP/1.1\r\nHost: a\r\n{field}{field}\r\n0\r\n\r\n"), 400);
    let other = "Transfer-Encoding: identity\r\n";
    is_refused(format!("POST / HTTP/1.1\r\nHost: a\r\n{field}{other}\r\n0\r\n\r\n"), 400);
    is_refused(format!("POST / HTTP/1.1\r\nHost: a\r\n{other}{field}\r\n0\r\n\r\n"), 400);
}

#[test]
fn with_a_transfer_coding_in_http_1_0() {
    is_refused("POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400);
}

#[test]
fn with_odd_lengths() {
    for length in ["+2", "-2", "0x2", "2, 2", "2 2", "two", "", "99999999999999999999", "2;"] {
        is_refused(
            format!("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\nab"),
            400,
        );
    }
    is_refused(
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nabc",
        400,
    );
}

#[test]
fn with_a_folded_line() {
    is_refused("GET / HTTP/1.1\r\nHost: a\r\nX-Folded: one\r\n two\r\n\r\n", 400);
    is_refused("GET / HTTP/1.1\r\n Host: a\r\n\r\n", 400);
}

#[test]
fn with_space_before_the_colon() {
    is_refused("GET / HTTP/1.1\r\nHost: a\r\nContent-Length : 0\r\n\r\n", 400);
    is_refused("GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding\t: chunked\r\n\r\n", 400);
}

#[test]
fn with_bytes_that_belong_in_no_head() {
    is_refused(b"GET / HTTP/1.1\r\nHost: a\r\nX: a\0b\r\n\r\n", 400);
    is_refused(b"GET / HTTP/1.1\r\nHost: a\r\nX\0: b\r\n\r\n", 400);
    is_refused(b"GET /\0 HTTP/1.1\r\nHost: a\r\n\r\n", 400);
    is_refused(b"GET / HTTP/1.1\r\nHost: a\r\nX: a\rb\r\n\r\n", 400);
    is_refused(b"GET / HTTP/1.1\r\nHost: a\rX: b\r\n\r\n", 400);
    is_refused(b"GET / HTTP/1.1\r\nHost: a\r\nX: \x7f\r\n\r\n", 400);
    is_refused(b"GET / HTTP/1.1\r\nHost: a\r\nno colon\r\n\r\n", 400);
    is_refused(b"GET / HTTP/1.1\r\nHost: a\r\n: no name\r\n\r\n", 400);
    is_refused("GET / HTTP/1.1\r\nHost: a\r\nNäme: b\r\n\r\n", 400);
}

#[test]
fn with_a_request_line_that_is_none() {
    is_refused("\x16\x03\x01\x02\x00\r\n\r\n", 400);
    is_refused("GET /\r\nHost: a\r\n\r\n", 400);
    is_refused("GET / HTTP/1.2\r\nHost: a\r\n\r\n", 505);
    is_refused("GET / HTTP/2.0\r\nHost: a\r\n\r\n", 505);
    is_refused("GET / HTTP/11\r\nHost: a\r\n\r\n", 400);
    is_refused("GET  / HTTP/1.1\r\nHost: a\r\n\r\n", 400);
    is_refused("GET / extra HTTP/1.1\r\nHost: a\r\n\r\n", 400);
    is_refused("G(T / HTTP/1.1\r\nHost: a\r\n\r\n", 400);
    is_refused("GET /a\tb HTTP/1.1\r\nHost: a\r\n\r\n", 400);
    is_refused("GET http:// HTTP/1.1\r\nHost: a\r\n\r\n", 400);
}

#[test]
fn with_a_target_that_is_no_utf_8() {
    is_refused(b"GET /\x80\xff HTTP/1.1\r\nHost: a\r\n\r\n", 400);
}

#[test]
fn with_a_long_target() {
    is_refused(get(&format!("/{}", "x".repeat(8 * 1024))), 414);
}

#[test]
fn with_a_target_that_does_not_fit_in_a_head() {
    is_refused(get(&format!("/{}", "x".repeat(40 * 1024))), 414);
    is_refused(get(&format!("/{}", "x".repeat(1 << 20))), 414);
}

#[test]
fn with_a_large_field() {
    is_refused(format!("GET / HTTP/1.1\r\nHost: a\r\nX: {}\r\n\r\n", "x".repeat(17_000)), 431);
    is_refused(format!("GET / HTTP/1.1\r\nHost: a\r\nX: {}\r\n\r\n", "x".repeat(1 << 20)), 431);
}

#[test]
fn with_many_fields() {
    is_refused(format!("GET / HTTP/1.1\r\nHost: a\r\n{}\r\n", "X: 1\r\n".repeat(100)), 431);
    is_refused(format!("GET / HTTP/1.1\r\nHost: a\r\n{}\r\n", "X: 1\r\n".repeat(2000)), 431);
}

#[test]
fn refusals_are_counted_by_their_fault() {
    let (_upstream, gateway) = gateway();
    gateway.sends("GET / HTTP/1.1\r\n\r\n").answer().unwrap();
    let answer = gateway.sends("GET / HTTP/1.1\r\nHost: a\r\nExpect: x\r\n\r\n").answer().unwrap();
    assert_eq!(answer.field("proxy-status"), Some("bywash; error=http_request_error"));
    assert_eq!(answer.field("connection"), Some("close"));
    let count = |fault: &str| {
        gateway.metric(&format!("bywash_malformed_messages_total{{fault=\"{fault}\"}}"))
    };
    assert_eq!((count("host"), count("expectation"), count("method")), (1.0, 1.0, 0.0));
}

#[test]
fn a_message_may_be_as_large_as_is_allowed() {
    let (_upstream, gateway) = gateway();
    let target = format!("/{}", "x".repeat(8 * 1024 - 1));
    assert_eq!(gateway.get(&target).text(), target);
    let fields = "X: 1\r\n".repeat(99);
    let many = format!("GET /many HTTP/1.1\r\nHost: a\r\n{fields}\r\n");
    assert_eq!(gateway.sends(many).answer().unwrap().text(), "/many");
    let large = format!("GET /large HTTP/1.1\r\nHost: a\r\nX: {}\r\n\r\n", "x".repeat(15_000));
    assert_eq!(gateway.sends(large).answer().unwrap().text(), "/large");
}
