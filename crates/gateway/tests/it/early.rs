//! Tests of answers that come before the upload has ended.

use std::time::Duration;

use crate::setup::{Setup, eventually, get};
use crate::upstream::{Upstream, ok};

const HEAD: &str = "POST /up HTTP/1.1\r\nHost: a\r\nContent-Length: 8000000\r\n\r\n";

#[test]
fn an_early_refusal_reaches_a_client_that_still_sends() {
    for _ in 0..10 {
        let upstream = Upstream::script(|mut wire| {
            wire.head().unwrap();
            wire.send(
                "HTTP/1.1 413 Content Too Large\r\nConnection: close\r\nContent-Length: 7\r\n\r\ntoo big",
            );
        });
        let gateway = Setup::before(&upstream).limit(1).start();
        let mut client = gateway.sends(HEAD);
        client.stream.set_write_timeout(Some(Duration::from_secs(1))).unwrap();
        let _ = client.try_send(vec![b'x'; 4_000_000]);
        let answer = client.answer().unwrap();
        assert_eq!((answer.status(), answer.text().as_str()), (Some(413), "too big"));
        assert_eq!(answer.field("connection"), Some("close"));
        drop(client);
        gateway.is_idle_again();
    }
}

#[test]
fn an_early_answer_ends_both_connections() {
    let (tell, ended) = std::sync::mpsc::channel();
    let upstream = Upstream::script(move |mut wire| {
        wire.head().unwrap();
        wire.send(ok("enough"));
        wire.rest();
        tell.send(()).unwrap();
    });
    let gateway = Setup::before(&upstream).limit(1).start();
    let mut client = gateway.sends(HEAD);
    let answer = client.answer().unwrap();
    assert_eq!(answer.text(), "enough");
    assert_eq!(answer.field("connection"), Some("close"));
    ended.recv_timeout(crate::wire::BOUND).unwrap();
    // Further bytes of the client must count as body, and never as a request.
    let _ = client.try_send(get("/smuggled"));
    assert!(client.is_closed());
    gateway.is_idle_again();
    assert_eq!(upstream.accepted(), 1);
    assert!(!upstream.received().contains("smuggled"));
}

#[test]
fn an_answer_may_begin_while_the_upload_goes_on() {
    let upstream = Upstream::script(|mut wire| {
        let head = wire.head().unwrap();
        wire.send("HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\n");
        assert_eq!(head.field("content-length"), Some("8"));
        for _ in 0..2 {
            let part = wire.bytes(4).unwrap();
            wire.send(part);
        }
    });
    let gateway = Setup::before(&upstream).limit(1).start();
    let mut client = gateway.sends("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 8\r\n\r\n");
    assert_eq!(client.head().unwrap().status(), Some(200));
    for part in [b"ping", b"pong"] {
        client.send(part);
        assert_eq!(client.bytes(4).unwrap(), part);
    }
    gateway.is_idle_again();
    eventually("it is counted", || gateway.outcome("served") == 1);
}

/// An answer that comes after the whole request does not close the connection.
#[test]
fn an_answer_to_a_whole_upload_leaves_the_connection_open() {
    let upstream = Upstream::app(|request| {
        format!("HTTP/1.1 400 Bad Request\r\nContent-Length: 1\r\n\r\n{}", request.body.len() % 10)
            .into_bytes()
    });
    let gateway = Setup::before(&upstream).start();
    let mut client = gateway.client();
    for length in [1, 5_000, 1_000_001] {
        client.send(crate::setup::post("/", &"x".repeat(length)));
        let answer = client.answer().unwrap();
        assert_eq!(answer.field("connection"), None, "{length}");
        client.send("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
        client.send(format!("{length:x}\r\n{}\r\n0\r\n\r\n", "x".repeat(length)));
        let answer = client.answer().unwrap();
        assert_eq!(answer.field("connection"), None, "{length}");
    }
}
