//! Tests of the end of a message: the requests that the upstream receives from bytes that two
//! parsers could split in different ways.

use crate::setup::{Setup, eventually, get};
use crate::upstream::Upstream;
use crate::wire::{Broken, Message};

/// Returns the message that the upstream receives when a client sends these bytes.
fn seen_by_the_upstream(bytes: impl AsRef<[u8]>) -> Message {
    let (upstream, calls) = Upstream::by_hand();
    let gateway = Setup::before(&upstream).start();
    let _client = gateway.sends(bytes);
    calls.next().request
}

/// Checks that the client gets an error, that its connection ends, and that nothing reaches the
/// upstream.
fn is_refused(bytes: impl AsRef<[u8]>) {
    let upstream = Upstream::echo();
    let gateway = Setup::before(&upstream).start();
    let shown = String::from_utf8_lossy(bytes.as_ref()).into_owned();
    let mut client = gateway.sends(bytes);
    assert_eq!(client.answer().unwrap().status(), Some(400), "{shown:?}");
    assert!(client.is_closed(), "{shown:?}");
    assert_eq!((upstream.accepted(), upstream.received()), (0, String::new()), "{shown:?}");
}

#[test]
fn a_length_beside_chunks_is_refused() {
    let heads = [
        "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n",
        "Content-Length: 3\r\nTransfer-Encoding: chunked\r\nContent-Length: 4\r\n",
    ];
    for fields in heads {
        let head = format!("POST /one HTTP/1.1\r\nHost: a\r\n{fields}\r\n");
        is_refused(head + "5\r\nhello\r\n0\r\n\r\n" + &get("/smuggled"));
    }
}

/// RFC 9110 §8.6 lets a recipient accept equal lengths as one. No honest client sends them.
#[test]
fn equal_lengths_are_refused() {
    let head = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\n";
    is_refused(format!("{head}abc"));
    is_refused("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3, 3\r\n\r\nabc");
}

/// RFC 9112 §2.2 lets a recipient accept a bare LF as a line end. Then two parsers may see
/// different messages in the same bytes.
#[test]
fn bare_line_feeds_are_refused() {
    is_refused("GET / HTTP/1.1\nHost: a\nX: y\n\n");
    is_refused("GET / HTTP/1.1\r\nHost: a\nX: y\r\n\r\n");
    is_refused("GET / HTTP/1.1\r\nHost: a\r\nX: y\r\n\n");
    is_refused("GET / HTTP/1.1\nHost: a\r\n\r\n");
}

#[test]
fn chunk_extensions_do_not_go_on() {
    let head = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
    let request = seen_by_the_upstream(format!("{head}3;a=\"b\"\r\nabc\r\n0;c\r\n\r\n"));
    assert_eq!(request.text(), "abc");
}

#[test]
fn a_body_that_looks_like_a_request_is_a_body() {
    let inner = get("/smuggled");
    let request = format!("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n", inner.len());
    let (upstream, calls) = Upstream::by_hand();
    let gateway = Setup::before(&upstream).start();
    let mut client = gateway.sends(request + &inner);
    let call = calls.next();
    assert_eq!(call.request.text(), inner);
    call.answer("");
    client.answer().unwrap();
    assert!(calls.is_empty());
    drop(upstream);
}

/// The upstream has the head before the broken chunk arrives. So the upstream sees an unfinished
/// request, and the client sees the end of its connection.
#[test]
fn broken_chunks_never_end_a_request() {
    let chunks = [
        "x\r\nabc\r\n0\r\n\r\n",
        "-3\r\nabc\r\n0\r\n\r\n",
        "0x3\r\nabc\r\n0\r\n\r\n",
        "3 \x0b\r\nabc\r\n0\r\n\r\n",
        "3\r\nabcd\r\n0\r\n\r\n",
        "3\r\nabc0\r\n\r\n",
        "3\nabc\r\n0\r\n\r\n",
        "3\rabc\r\n0\r\n\r\n",
        "10000000000000003\r\nabc\r\n0\r\n\r\n",
        "3;\n\r\nabc\r\n0\r\n\r\n",
        "3\r\nabc\r\n0\r\nno trailer\r\n\r\n",
    ];
    for body in chunks {
        let (upstream, calls) = Upstream::by_hand();
        let gateway = Setup::before(&upstream).limit(1).start();
        let head = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
        let mut client = gateway.sends(format!("{head}{body}{}", get("/smuggled")));
        // The client gets an error or nothing, and then the end of the connection.
        match client.answer() {
            Ok(answer) => {
                assert!(matches!(answer.status(), Some(400 | 502)), "{body:?}: {answer:?}");
            }
            Err(broken) => assert_ne!(broken, Broken::Silent, "{body:?}"),
        }
        assert!(client.is_closed(), "{body:?}");
        gateway.is_idle_again();
        eventually("the upstream's connection ends", || upstream.open() == 0);
        assert!(calls.is_empty(), "{body:?}: {}", upstream.received());
        assert!(!upstream.received().contains("smuggled"), "{body:?}");
    }
}

#[test]
fn a_client_that_breaks_its_own_body_is_at_fault_itself() {
    let (upstream, _calls) = Upstream::by_hand();
    let gateway = Setup::before(&upstream).limit(1).start();
    let head = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
    let answer = gateway.sends(format!("{head}x\r\n")).answer().unwrap();
    assert_eq!(answer.status(), Some(400));
    assert_eq!(gateway.outcome("upstream_error"), 0);
}

#[test]
fn a_client_that_breaks_its_own_body_while_it_waits_is_told() {
    let (upstream, calls) = Upstream::by_hand();
    let gateway = Setup::before(&upstream).limit(1).start();
    let _running = gateway.asks("/runs");
    let _call = calls.next();
    let head = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
    let answer = gateway.sends(format!("{head}x\r\n")).answer().unwrap();
    assert_eq!(answer.status(), Some(400));
}

mod of_answers {
    use super::*;

    #[test]
    fn a_length_beside_chunks_is_an_error() {
        let upstream = Upstream::app(|_| {
            b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n\
              5\r\nhello\r\n0\r\n\r\n"
                .to_vec()
        });
        let gateway = Setup::before(&upstream).start();
        let mut client = gateway.client();
        for _ in 0..2 {
            client.send(get("/"));
            assert_eq!(client.answer().unwrap().status(), Some(502));
        }
        // Neither upstream connection was used again.
        assert_eq!(upstream.accepted(), 2);
    }

    #[test]
    fn two_lengths_are_an_error() {
        let upstream = Upstream::app(|_| {
            b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\nabc".to_vec()
        });
        let gateway = Setup::before(&upstream).start();
        assert_eq!(gateway.get("/").status(), Some(502));
    }

    #[test]
    fn a_transfer_coding_beside_chunks_is_not_passed_off_as_the_body() {
        let upstream = Upstream::app(|_| {
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n3\r\nzip\r\n0\r\n\r\n"
                .to_vec()
        });
        let gateway = Setup::before(&upstream).start();
        assert_eq!(gateway.get("/").status(), Some(502));
    }

    #[test]
    fn more_than_the_length_says_is_not_passed_on() {
        let upstream = Upstream::app(|_| {
            b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabcHTTP/1.1 200 OK\r\n\r\n".to_vec()
        });
        let gateway = Setup::before(&upstream).start();
        let mut client = gateway.client();
        for _ in 0..5 {
            client.send(get("/"));
            assert_eq!(client.answer().unwrap().text(), "abc");
        }
    }

    #[test]
    fn a_body_that_must_not_be_there_is_not_passed_on() {
        let upstream = Upstream::app(|request| match request.target() {
            "/204" => b"HTTP/1.1 204 No Content\r\n\r\nevil".to_vec(),
            "/304" => b"HTTP/1.1 304 Not Modified\r\nContent-Length: 4\r\n\r\nevil".to_vec(),
            _ => b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil".to_vec(),
        });
        let gateway = Setup::before(&upstream).start();
        let mut client = gateway.client();
        for request in [get("/204"), get("/304"), get("/").replace("GET", "HEAD"), get("/204")] {
            client.send(request);
            assert!(client.answer_to_head().is_ok());
        }
        client.send(get("/"));
        assert_eq!(client.answer().unwrap().text(), "evil");
    }
}
