//! Tests of interim answers (1xx).

use crate::setup::{Setup, get, post};
use crate::upstream::{Upstream, ok};

const HINTS: &str = "HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\
                     Connection: x-hop\r\nX-Hop: 1\r\nKeep-Alive: timeout=5\r\n\r\n";
const CONTINUE: &str = "HTTP/1.1 100 Continue\r\n\r\n";

/// Starts a server that sends `before`, and then the answer `final`.
fn saying(before: String) -> Upstream {
    Upstream::app(move |_| [before.as_bytes(), &ok("final")].concat())
}

#[test]
fn early_hints_are_passed_on() {
    let upstream = saying(HINTS.to_owned());
    let gateway = Setup::before(&upstream).start();
    let mut client = gateway.client();
    for request in [get("/"), post("/", "abc"), get("/")] {
        client.send(request);
        let hints = client.head().unwrap();
        assert_eq!(hints.start, "HTTP/1.1 103 Early Hints");
        assert_eq!(hints.fields, [("Link".to_owned(), "</a.css>; rel=preload".to_owned())]);
        assert_eq!(client.answer().unwrap().text(), "final");
    }
    assert_eq!(upstream.accepted(), 1);
}

#[test]
fn they_are_passed_on_when_they_come_and_not_with_the_answer() {
    let (upstream, calls) = Upstream::by_hand();
    let gateway = Setup::before(&upstream).start();
    let mut client = gateway.asks("/");
    let mut call = calls.next();
    for _ in 0..2 {
        call.send(HINTS);
        assert_eq!(client.head().unwrap().status(), Some(103));
    }
    call.answer("final");
    assert_eq!(client.answer().unwrap().text(), "final");
}

#[test]
fn those_that_nobody_knows_are_passed_on_too() {
    let upstream = saying("HTTP/1.1 199 Something\r\n\r\nHTTP/1.1 102 Processing\r\n\r\n".into());
    let gateway = Setup::before(&upstream).start();
    let mut client = gateway.asks("/");
    assert_eq!(client.head().unwrap().status(), Some(199));
    assert_eq!(client.head().unwrap().status(), Some(102));
    assert_eq!(client.answer().unwrap().text(), "final");
}

#[test]
fn one_that_says_go_on_is_the_gateways_own_business() {
    let upstream = saying(format!("{CONTINUE}{HINTS}{CONTINUE}"));
    let gateway = Setup::before(&upstream).start();
    let mut client = gateway.client();
    for request in [get("/"), post("/", "abc")] {
        client.send(request);
        assert_eq!(client.head().unwrap().status(), Some(103));
        assert_eq!(client.answer().unwrap().text(), "final");
    }
}

#[test]
fn a_client_that_waits_to_go_on_is_told_once() {
    let (upstream, calls) = Upstream::by_hand();
    let gateway = Setup::before(&upstream).start();
    let mut client =
        gateway.sends(post("/", "").replace(": 0\r\n", ": 3\r\nExpect: 100-continue\r\n"));
    assert_eq!(client.head().unwrap().status(), Some(100));
    client.send("abc");
    let mut call = calls.next();
    call.send(CONTINUE);
    call.send(HINTS);
    call.answer("final");
    assert_eq!(client.head().unwrap().status(), Some(103));
    assert_eq!(client.answer().unwrap().text(), "final");
}

#[test]
fn a_client_of_http_1_0_gets_none() {
    let upstream = saying(format!("{HINTS}{HINTS}"));
    let gateway = Setup::before(&upstream).start();
    let mut client = gateway.sends("GET / HTTP/1.0\r\n\r\n");
    let answer = client.answer().unwrap();
    assert_eq!((answer.status(), answer.text().as_str()), (Some(200), "final"));
}

#[test]
fn an_upstream_that_says_nothing_else_is_not_waited_for_for_ever() {
    let (upstream, calls) = Upstream::by_hand();
    let gateway =
        Setup::before(&upstream).limit(1).set("upstream.response_timeout", "'200ms'").start();
    let mut client = gateway.asks("/");
    let mut call = calls.next();
    // The client may get any number of interim answers, but never the final one.
    let hints = std::thread::spawn(move || {
        while !call.is_abandoned() {
            if call.try_send(HINTS).is_err() {
                return;
            }
            // This sleep sets the server's pace. The test does not wait for anything here.
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    });
    let answer = loop {
        let answer = client.answer().unwrap();
        if answer.status() != Some(103) {
            break answer;
        }
    };
    assert_eq!(answer.status(), Some(504));
    gateway.is_idle_again();
    hints.join().unwrap();
}
