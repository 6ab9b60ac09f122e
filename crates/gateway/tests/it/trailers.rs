//! Tests of trailers. They are passed on if both sides can take them, and only if they may be
//! trailers.

use crate::setup::{Setup, get};
use crate::upstream::Upstream;
use crate::wire::{Field, Message};

const CHUNKED: &str = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n";

/// Returns the request that the upstream sees.
fn seen(request: &str) -> Message {
    let (upstream, calls) = Upstream::by_hand();
    let gateway = Setup::before(&upstream).start();
    let _client = gateway.sends(request);
    calls.next().request
}

/// Starts an upstream that sends the same response to every request, with these trailers.
fn answering(trailers: &str) -> Upstream {
    let answer = format!(
        "HTTP/1.1 200 OK\r\nTrailer: X-Sum\r\nTransfer-Encoding: chunked\r\n\r\n\
         5\r\nhello\r\n0\r\n{trailers}\r\n"
    );
    Upstream::app(move |_| answer.clone().into_bytes())
}

const TAKES: &str = "GET / HTTP/1.1\r\nHost: a\r\nConnection: te\r\nTE: trailers\r\n\r\n";

fn field(name: &str, value: &str) -> Field {
    (name.into(), value.into())
}

const NONE: [Field; 0] = [];

#[test]
fn those_of_a_chunked_request_go_up() {
    let request = seen(&format!(
        "{CHUNKED}Trailer: X-Sum\r\n\r\n3\r\nabc\r\n0\r\nX-Sum: 1\r\nx-other: 2\r\n\r\n"
    ));
    assert_eq!(request.text(), "abc");
    assert_eq!(request.all("trailer"), ["X-Sum"]);
    assert_eq!(request.trailers, [field("X-Sum", "1"), field("x-other", "2")]);
}

#[test]
fn those_of_a_request_that_has_waited_go_up() {
    let (upstream, calls) = Upstream::by_hand();
    let gateway = Setup::before(&upstream).limit(1).start();
    let _running = gateway.asks("/runs");
    let call = calls.next();
    let _waiting = gateway.sends(format!("{CHUNKED}\r\n3\r\nabc\r\n0\r\nX-Sum: 1\r\n\r\n"));
    gateway.waits_for("waiting", 1);
    call.answer("");
    let request = calls.next().request;
    assert_eq!(
        (request.text().as_str(), &request.trailers[..]),
        ("abc", &[field("X-Sum", "1")][..])
    );
}

#[test]
fn a_request_of_a_length_announces_none() {
    let request =
        seen("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nTrailer: X-Sum\r\n\r\nabc");
    assert_eq!((request.field("trailer"), &request.trailers[..]), (None, &NONE[..]));
}

#[test]
fn those_of_an_answer_go_to_a_client_that_takes_them() {
    let upstream = answering("X-Sum: 1\r\nx-other: 2\r\n");
    let gateway = Setup::before(&upstream).start();
    let mut client = gateway.client();
    for _ in 0..2 {
        client.send(TAKES);
        let answer = client.answer().unwrap();
        assert_eq!((answer.text().as_str(), answer.field("trailer")), ("hello", Some("X-Sum")));
        assert_eq!(answer.trailers, [field("X-Sum", "1"), field("x-other", "2")]);
    }
    // The gateway has told the upstream in its own name that it accepts trailers.
    let received = upstream.received();
    assert_eq!(received.matches("\r\nTE: trailers\r\n").count(), 2, "{received}");
    assert_eq!(received.matches("\r\nConnection: te\r\n").count(), 2, "{received}");
}

#[test]
fn those_of_an_answer_go_to_nobody_else() {
    let upstream = answering("X-Sum: 1\r\n");
    let gateway = Setup::before(&upstream).start();
    let requests = [
        get("/"),
        // `TE` is not nominated in `Connection`, so it may have come from any hop.
        TAKES.replace("Connection: te\r\n", ""),
        TAKES.replace("TE: trailers", "TE: gzip"),
    ];
    let mut client = gateway.client();
    for request in requests {
        client.send(&request);
        let answer = client.answer().unwrap();
        assert_eq!(answer.text(), "hello", "{request}");
        assert_eq!((answer.field("trailer"), &answer.trailers[..]), (None, &NONE[..]), "{request}");
    }
    assert!(!upstream.received().contains("TE: trailers"));
    assert_eq!(upstream.accepted(), 1);
}

#[test]
fn a_client_of_http_1_0_gets_the_body_alone() {
    let upstream = answering("X-Sum: 1\r\n");
    let gateway = Setup::before(&upstream).start();
    let mut client = gateway.sends(TAKES.replace("HTTP/1.1", "HTTP/1.0"));
    assert_eq!(client.answer().unwrap().text(), "hello");
}

#[test]
fn fields_that_belong_in_a_head_are_not_taken_from_behind_a_body() {
    let forbidden = "Host: evil\r\nContent-Length: 3\r\nTransfer-Encoding: gzip\r\nBywash-Class: gold\r\n\
                     X-Forwarded-For: 192.0.2.1\r\nCookie: sid=1\r\nAuthorization: x\r\nX-Fine: 1\r\n";
    let request = seen(&format!("{CHUNKED}\r\n3\r\nabc\r\n0\r\n{forbidden}\r\n"));
    assert_eq!(request.trailers, [field("X-Fine", "1")]);

    let upstream =
        answering("Content-Length: 3\r\nSet-Cookie: sid=1\r\nLocation: /\r\nX-Fine: 1\r\n");
    let gateway = Setup::before(&upstream).start();
    let answer = gateway.sends(TAKES).answer().unwrap();
    assert_eq!(answer.trailers, [field("X-Fine", "1")]);
}

#[test]
fn those_that_are_too_large_are_refused() {
    let (upstream, _calls) = Upstream::by_hand();
    let gateway = Setup::before(&upstream).limit(1).start();
    let large = format!("X: {}\r\n", "x".repeat(20_000));
    let mut client = gateway.sends(format!("{CHUNKED}\r\n3\r\nabc\r\n0\r\n{large}\r\n"));
    assert_eq!(client.answer().unwrap().status(), Some(400));
    assert!(client.is_closed());
    gateway.is_idle_again();
}
