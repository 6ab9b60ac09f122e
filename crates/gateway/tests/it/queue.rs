//! Tests of requests that wait for a slot, and of requests that get none.

use crate::setup::{Running, Setup, get, post};
use crate::upstream::{Calls, Upstream};
use crate::wire::{Message, Wire};

/// Starts a gateway with one slot and two places in the queue.
fn small() -> (Upstream, Calls, Running) {
    let (upstream, calls) = Upstream::by_hand();
    let gateway = Setup::before(&upstream).limit(1).set("scheduler.capacity", "2").start();
    (upstream, calls, gateway)
}

/// Checks the response to a client that was refused for this reason.
fn is_refusal(answer: &Message, reason: &str) {
    assert_eq!(answer.status(), Some(503), "{answer:?}");
    let seconds: u64 = answer.field("retry-after").unwrap().parse().unwrap();
    assert!(seconds >= 1);
    let begins = format!("bywash; error=connection_limit_reached; bywash-reason={reason}");
    let details = answer.field("proxy-status").and_then(|status| status.strip_prefix(&*begins));
    let wait = details.and_then(|rest| rest.strip_prefix("; bywash-class=other; bywash-wait="));
    assert!(wait.is_some_and(|wait| wait.parse::<u64>().is_ok()), "{answer:?}");
    assert_eq!(answer.field("cache-control"), Some("no-store"));
    assert!((1..200).contains(&answer.body.len()), "{answer:?}");
}

/// Fills both places of the queue.
fn fill(gateway: &Running) -> [Wire; 2] {
    let mut number = 0;
    [(); 2].map(|()| {
        number += 1;
        let client = gateway.asks(&format!("/waits/{number}"));
        gateway.waits_for("waiting", number);
        client
    })
}

#[test]
fn the_second_request_waits_for_the_first_to_end() {
    let (_upstream, calls, gateway) = small();
    let mut first = gateway.asks("/first");
    let call = calls.next();
    let mut second = gateway.asks("/second");
    gateway.waits_for("waiting", 1);
    assert!(calls.is_empty());
    assert_eq!(gateway.count("running"), 1);
    call.answer("1");
    assert_eq!(first.answer().unwrap().text(), "1");
    let call = calls.next();
    assert_eq!(call.target(), "/second");
    call.answer("2");
    assert_eq!(second.answer().unwrap().text(), "2");
    gateway.is_idle_again();
}

#[test]
fn a_slot_comes_back_with_the_last_byte_and_not_before() {
    let (_upstream, calls, gateway) = small();
    let mut first = gateway.asks("/first");
    let mut call = calls.next();
    let _second = gateway.asks("/second");
    call.send("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nabc");
    first.head().unwrap();
    gateway.waits_for("waiting", 1);
    assert!(calls.is_empty());
    call.send("def");
    assert_eq!(calls.next().target(), "/second");
}

#[test]
fn one_too_many_is_refused_and_keeps_its_connection() {
    let (_upstream, calls, gateway) = small();
    let _running = gateway.asks("/runs");
    let call = calls.next();
    let [mut next, _last] = fill(&gateway);
    let mut refused = gateway.asks("/refused");
    is_refusal(&refused.answer().unwrap(), "queue_full");
    assert_eq!(gateway.outcome("shed"), 1);
    // The client is refused a second time, on the same connection.
    refused.send(post("/refused", "with a body"));
    is_refusal(&refused.answer().unwrap(), "queue_full");
    call.answer("");
    calls.next().answer("next");
    assert_eq!(next.answer().unwrap().text(), "next");
    // Now there is a place in the queue, and the client uses the same connection.
    refused.send(get("/at-last"));
    calls.next().answer("");
    let call = calls.next();
    assert_eq!(call.target(), "/at-last");
    call.answer("welcome");
    assert_eq!(refused.answer().unwrap().text(), "welcome");
}

#[test]
fn a_refused_head_request_gets_no_body() {
    let (_upstream, calls, gateway) = small();
    let _running = gateway.asks("/runs");
    let _call = calls.next();
    let _waiting = fill(&gateway);
    let mut refused = gateway.sends(get("/").replace("GET", "HEAD"));
    assert_eq!(refused.answer_to_head().unwrap().status(), Some(503));
    refused.send(get("/"));
    is_refusal(&refused.answer().unwrap(), "queue_full");
}

#[test]
fn whoever_refuses_a_large_upload_says_so() {
    let (_upstream, calls, gateway) = small();
    let _running = gateway.asks("/runs");
    let _call = calls.next();
    let _waiting = fill(&gateway);
    let body = vec![b'x'; 4 * 1024 * 1024];
    let head = format!("POST /big HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n", body.len());
    let mut refused = gateway.sends(head);
    // The gateway need not accept the whole body.
    let _ = refused.try_send(body);
    is_refusal(&refused.answer().unwrap(), "queue_full");
}

#[test]
fn who_has_waited_too_long_is_refused() {
    let (upstream, calls) = Upstream::by_hand();
    let gateway = Setup::before(&upstream).limit(1).set("queue.max_wait", "'100ms'").start();
    let _running = gateway.asks("/runs");
    let _call = calls.next();
    let mut late = gateway.asks("/late");
    is_refusal(&late.answer().unwrap(), "waited_too_long");
    assert_eq!(gateway.outcome("expired"), 1);
    assert_eq!((gateway.count("running"), gateway.count("waiting")), (1, 0));
    // The connection stays usable, and the request never reaches the upstream.
    late.send(get("/late-again"));
    is_refusal(&late.answer().unwrap(), "waited_too_long");
    assert!(calls.is_empty());
}

#[test]
fn a_body_that_came_while_waiting_arrives_whole() {
    let (_upstream, calls, gateway) = small();
    let _running = gateway.asks("/runs");
    let call = calls.next();
    // The body is larger than the part that the gateway reads ahead.
    let body = "0123456789".repeat(40_000);
    let mut waiting = gateway.client();
    std::thread::scope(|scope| {
        let (mut out, body) = (Wire::new(waiting.stream.try_clone().unwrap()), &body);
        scope.spawn(move || out.send(post("/upload", body)));
        gateway.waits_for("waiting", 1);
        call.answer("");
        let call = calls.next();
        assert!(call.request.text() == *body);
        call.answer("thanks");
    });
    assert_eq!(waiting.answer().unwrap().text(), "thanks");
}

#[test]
fn a_chunked_body_that_came_while_waiting_arrives_whole() {
    let (_upstream, calls, gateway) = small();
    let _running = gateway.asks("/runs");
    let call = calls.next();
    let head = "POST /chunks HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
    let mut waiting = gateway.sends(format!("{head}3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"));
    gateway.waits_for("waiting", 1);
    call.answer("");
    let call = calls.next();
    assert_eq!(call.request.text(), "abcde");
    call.answer("thanks");
    assert_eq!(waiting.answer().unwrap().text(), "thanks");
}

#[test]
fn pipelined_requests_wait_one_after_another() {
    let (_upstream, calls, gateway) = small();
    let _running = gateway.asks("/runs");
    let call = calls.next();
    let mut client = gateway.sends(get("/a") + &get("/b") + &get("/c"));
    gateway.waits_for("waiting", 1);
    call.answer("");
    for target in ["/a", "/b", "/c"] {
        let call = calls.next();
        assert_eq!(call.target(), target);
        call.answer(target);
        assert_eq!(client.answer().unwrap().text(), target);
    }
}

#[test]
fn whoever_is_refused_with_a_body_is_told_if_its_connection_ends() {
    let (_upstream, calls, gateway) = small();
    let _running = gateway.asks("/runs");
    let _call = calls.next();
    let _waiting = fill(&gateway);
    for size in [0, 10, 1000, 10_000, 50_000, 500_000] {
        let mut refused = gateway.client();
        let _ = refused.try_send(post("/refused", &"x".repeat(size)));
        let answer = refused.answer().unwrap();
        is_refusal(&answer, "queue_full");
        if answer.field("connection") != Some("close") {
            assert!(refused.try_send(get("/again")).is_ok(), "{size} bytes");
            let again = refused.answer();
            assert!(again.is_ok(), "after {size} bytes: {again:?}");
        }
    }
}

mod a_client_that_asks_first {
    use super::*;

    fn asks(target: &str) -> String {
        format!(
            "POST {target} HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n"
        )
    }

    #[test]
    fn is_told_to_go_on_once_it_is_admitted() {
        let (upstream, calls, gateway) = small();
        let _running = gateway.asks("/runs");
        let call = calls.next();
        let mut client = gateway.sends(asks("/upload"));
        gateway.waits_for("waiting", 1);
        assert!(client.has_nothing_to_read());
        call.answer("");
        assert_eq!(client.head().unwrap().status(), Some(100));
        client.send("abc");
        let call = calls.next();
        assert_eq!(call.request.text(), "abc");
        assert_eq!(call.request.field("expect"), None);
        call.answer("thanks");
        assert_eq!(client.answer().unwrap().text(), "thanks");
        assert_eq!(upstream.accepted(), 1);
    }

    #[test]
    fn is_refused_without_being_told_to_go_on() {
        let (_upstream, calls, gateway) = small();
        let _running = gateway.asks("/runs");
        let _call = calls.next();
        let _waiting = fill(&gateway);
        let mut client = gateway.sends(asks("/upload"));
        is_refusal(&client.answer().unwrap(), "queue_full");
        assert!(client.is_closed());
    }

    #[test]
    fn is_refused_without_being_told_to_go_on_after_a_wait() {
        let (upstream, calls) = Upstream::by_hand();
        let gateway = Setup::before(&upstream).limit(1).set("queue.max_wait", "'100ms'").start();
        let _running = gateway.asks("/runs");
        let _call = calls.next();
        let mut client = gateway.sends(asks("/upload"));
        is_refusal(&client.answer().unwrap(), "waited_too_long");
        assert!(client.is_closed());
    }

    #[test]
    fn is_told_that_the_upstream_is_away_without_being_told_to_go_on() {
        let gateway = Setup::before_address(crate::upstream::nobody()).start();
        let mut client = gateway.sends(asks("/upload"));
        assert_eq!(client.answer().unwrap().status(), Some(502));
    }
}
