//! Tests of the time limits of an upstream for each class: to the first byte, between two bytes,
//! and in total.

use crate::setup::{Setup, eventually};
use crate::upstream::{Call, Upstream};
use crate::wire::{Broken, Message};

/// Returns the reason for the failure, as given to trusted hops.
fn details(answer: &Message) -> &str {
    let status = answer.field("proxy-status").unwrap();
    status.split_once("details=").map_or("", |(_, details)| details.trim_matches('"'))
}

/// Sends a byte now and then until the gateway accepts no more. The sleep makes the upstream slow.
fn trickles(mut call: Call) {
    while !call.is_abandoned() && call.try_send("x").is_ok() {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

#[test]
fn each_class_has_its_own_time_to_begin() {
    let (upstream, calls) = Upstream::by_hand();
    let gateway = Setup::before(&upstream)
        .set("upstream.response_timeout", "'100ms'")
        .set("class.report", "{ match = ['GET /report'], response_timeout = '1h' }")
        .start();
    let mut patient = gateway.asks("/report");
    let call = calls.next();
    // The second request comes later, and is given up.
    let answer = gateway.get("/page");
    assert_eq!((answer.status(), details(&answer)), (Some(504), "response_timeout"));
    call.answer("at last");
    assert_eq!(patient.answer().unwrap().text(), "at last");
}

#[test]
fn each_class_has_its_own_time_to_stand_still() {
    const BEGINS: &str = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nabc";
    let (upstream, calls) = Upstream::by_hand();
    let gateway = Setup::before(&upstream)
        .limit(2)
        .set("upstream.idle_timeout", "'100ms'")
        .set("class.report", "{ match = ['GET /report'], idle_timeout = '1h' }")
        .start();
    let mut patient = gateway.asks("/report");
    let mut call = calls.next();
    call.send(BEGINS);
    let mut cut = gateway.asks("/page");
    let mut stuck = calls.next();
    stuck.send(BEGINS);
    assert_eq!(cut.answer(), Err(Broken::Cut));
    eventually("the connection to it is closed", || stuck.is_abandoned());
    gateway.waits_for("running", 1);
    eventually("it is counted", || gateway.outcome("upstream_error") == 1);
    call.send("def");
    assert_eq!(patient.answer().unwrap().text(), "abcdef");
}

#[test]
fn an_answer_that_gets_on_may_take_its_time() {
    let (upstream, calls) = Upstream::by_hand();
    let gateway = Setup::before(&upstream)
        .set("upstream.idle_timeout", "'300ms'")
        .set("upstream.response_timeout", "'300ms'")
        .start();
    let mut client = gateway.asks("/");
    let mut call = calls.next();
    call.send("HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\n");
    for byte in b"8 pieces" {
        std::thread::sleep(std::time::Duration::from_millis(80));
        call.send([*byte]);
    }
    assert_eq!(client.answer().unwrap().text(), "8 pieces");
}

#[test]
fn an_answer_that_gets_on_for_ever_is_cut_where_there_is_a_limit() {
    let (upstream, calls) = Upstream::by_hand();
    let gateway = Setup::before(&upstream)
        .limit(1)
        .set("class.report", "{ match = ['GET /report'], total_timeout = '300ms' }")
        .start();
    let mut client = gateway.asks("/report");
    let mut call = calls.next();
    call.send("HTTP/1.1 200 OK\r\nContent-Length: 99999\r\n\r\n");
    let upstreams = std::thread::spawn(move || trickles(call));
    assert_eq!(client.answer(), Err(Broken::Cut));
    gateway.is_idle_again();
    eventually("it is counted", || gateway.outcome("upstream_error") == 1);
    upstreams.join().unwrap();
}

#[test]
fn the_limit_on_all_of_it_counts_before_the_answer_too() {
    let (upstream, calls) = Upstream::by_hand();
    let gateway = Setup::before(&upstream)
        .set("class.report", "{ match = ['GET /report'], total_timeout = '100ms' }")
        .start();
    let mut client = gateway.asks("/report");
    let _call = calls.next();
    let answer = client.answer().unwrap();
    assert_eq!((answer.status(), details(&answer)), (Some(504), "total_timeout"));
}

#[test]
fn waiting_for_a_slot_is_no_part_of_it() {
    let (upstream, calls) = Upstream::by_hand();
    let gateway = Setup::before(&upstream)
        .limit(1)
        .set("upstream.response_timeout", "'300ms'")
        .set("class.report", "{ match = ['GET /report'], response_timeout = '1h' }")
        .start();
    let _running = gateway.asks("/report");
    let call = calls.next();
    let mut waiting = gateway.asks("/page");
    gateway.waits_for("waiting", 1);
    let waited = gateway.count("uptime_ms") + 400;
    eventually("it has waited for longer", || gateway.count("uptime_ms") > waited);
    call.answer("");
    calls.next().answer("page");
    assert_eq!(waiting.answer().unwrap().text(), "page");
}

/// After a response has begun, the request body has no minimum rate. But a client that sends a byte
/// now and then must not hold its slot forever.
#[test]
fn crumbs_of_a_body_behind_the_beginning_of_the_answer_do_not_hold_the_slot() {
    let upstream = Upstream::script(|mut wire| {
        if wire.head().is_ok() {
            wire.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n");
            wire.rest();
        }
    });
    let gateway = Setup::before(&upstream).set("upstream.idle_timeout", "'500ms'").start();
    let mut client = gateway.sends("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 99\r\n\r\n");
    client.head().unwrap();
    for _ in 0..50 {
        // This sleep makes the client slow.
        std::thread::sleep(std::time::Duration::from_millis(100));
        if client.try_send("x").is_err() || gateway.count("running") == 0 {
            break;
        }
    }
    assert_eq!(gateway.count("running"), 0);
    gateway.is_idle_again();
}
