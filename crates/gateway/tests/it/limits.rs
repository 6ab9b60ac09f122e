//! Tests of limits on the time and the connections that clients may take.

use std::time::{Duration, Instant};

use crate::setup::{Setup, eventually, get};
use crate::upstream::Upstream;
use crate::wire::{Broken, Wire};

/// Returns whether a connection ends although the client sends a byte every 100 ms.
fn ends_while_it_trickles(client: &mut Wire) -> bool {
    let end = Instant::now() + Duration::from_secs(9);
    client.stream.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    while Instant::now() < end {
        let _ = client.try_send("x");
        if client.head() != Err(Broken::Silent) {
            return true;
        }
    }
    false
}

#[test]
fn a_slow_head_is_cut_on_every_kind_of_connection() {
    let upstream = Upstream::echo();
    let gateway = Setup::before(&upstream).set("client_limits.header_timeout", "'1s'").start();
    let mut fresh = gateway.sends("GET / HTTP/1.1\r\nHost: a\r\nX-Slow: ");
    let mut used = gateway.asks("/");
    used.answer().unwrap();
    used.send("GET / HTTP/1.1\r\nHost: a\r\nX-Slow: ");
    let mut silent = gateway.client();
    let mut pipelined = gateway.sends(get("/") + "GET /slow HTTP/1.1\r\nHost: a\r\nX-Slow: ");
    pipelined.answer().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| assert!(ends_while_it_trickles(&mut fresh), "fresh"));
        scope.spawn(|| assert!(ends_while_it_trickles(&mut used), "used"));
        scope.spawn(|| assert!(ends_while_it_trickles(&mut pipelined), "pipelined"));
        assert!(silent.is_closed(), "silent");
    });
    gateway.waits_for("connections", 0);
}

#[test]
fn half_a_head_that_came_with_the_request_before_it_is_cut() {
    let upstream = Upstream::echo();
    let gateway = Setup::before(&upstream).set("client_limits.header_timeout", "'1s'").start();
    let mut client = gateway.sends(get("/") + "GET /slow HTTP/1.1\r\nHost: a\r\nX-Slow: ");
    assert_eq!(client.answer().unwrap().text(), "/");
    let answer = client.answer().unwrap();
    assert_eq!((answer.status(), answer.field("connection")), (Some(408), Some("close")));
    assert!(client.is_closed());
}

#[test]
fn an_idle_connection_outlives_the_limit_on_heads() {
    let upstream = Upstream::echo();
    let gateway = Setup::before(&upstream).set("client_limits.header_timeout", "'100ms'").start();
    let mut idle = gateway.asks("/");
    idle.answer().unwrap();
    // A client that sends nothing is cut off after the limit. By that time, the other client has
    // been idle for longer.
    assert!(gateway.client().is_closed());
    idle.send(get("/again"));
    assert_eq!(idle.answer().unwrap().text(), "/again");
}

#[test]
fn a_request_that_waits_long_is_not_taken_for_a_slow_head() {
    let (upstream, calls) = Upstream::by_hand();
    let gateway =
        Setup::before(&upstream).limit(1).set("client_limits.header_timeout", "'100ms'").start();
    let mut running = gateway.asks("/runs");
    let call = calls.next();
    let mut waiting = gateway.asks("/waits");
    gateway.waits_for("waiting", 1);
    assert!(gateway.client().is_closed());
    call.answer("1");
    assert_eq!(running.answer().unwrap().text(), "1");
    calls.next().answer("2");
    assert_eq!(waiting.answer().unwrap().text(), "2");
}

#[test]
fn one_connection_too_many_is_closed_at_once_if_none_is_idle() {
    let (upstream, calls) = Upstream::by_hand();
    let gateway = Setup::before(&upstream).set("client_limits.connections", "3").start();
    let mut open: Vec<Wire> = (0..3).map(|_| gateway.asks("/")).collect();
    let running: Vec<_> = (0..3).map(|_| calls.next()).collect();
    for _ in 0..5 {
        assert!(gateway.client().is_closed());
    }
    assert_eq!(gateway.metric("bywash_refused_connections_total"), 5.0);
    // The running requests are not affected, and a connection that ends makes room for another.
    for call in running {
        call.answer("/");
    }
    for client in &mut open {
        assert_eq!(client.answer().unwrap().text(), "/");
    }
    open.pop();
    eventually("there is room", || gateway.count("connections") == 2);
    let mut newcomer = gateway.asks("/new");
    calls.next().answer("/new");
    assert_eq!(newcomer.answer().unwrap().text(), "/new");
}

#[test]
fn requests_that_hold_no_slot_are_bounded() {
    let (upstream, calls) = Upstream::by_hand();
    let gateway = Setup::before(&upstream)
        .set("mode", "'observe'")
        .set("client_limits.observed", "2")
        .start();
    let mut running: Vec<Wire> = (0..2).map(|_| gateway.asks("/")).collect();
    let at_once: Vec<_> = (0..2).map(|_| calls.next()).collect();
    let refused = gateway.get("/");
    assert_eq!(refused.status(), Some(503));
    assert!(refused.field("proxy-status").unwrap().contains("connection_limit_reached"));
    let fault = "bywash_local_faults_total{cause=\"observed_requests\"}";
    assert_eq!(gateway.metric(fault), 1.0);
    // Requests that end make room.
    for call in at_once {
        call.answer("/");
    }
    for client in &mut running {
        assert_eq!(client.answer().unwrap().text(), "/");
    }
    gateway.is_idle_again();
    let mut next = gateway.asks("/next");
    calls.next().answer("next");
    assert_eq!(next.answer().unwrap().text(), "next");
}
