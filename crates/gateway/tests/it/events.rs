//! Tests of server-sent events: answers that last as long as their client stays.

use crate::http2::Http2;
use crate::setup::{Setup, eventually, get};
use crate::upstream::{Call, Upstream};
use crate::wire::Broken;

const BEGINS: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\n\
                      Transfer-Encoding: chunked\r\n\r\n";
const EVENT: &str = "d\r\ndata: hello\n\n\r\n";

fn begins(mut call: Call) -> Call {
    call.send(BEGINS);
    call
}

#[test]
fn they_give_their_slot_back_when_they_begin() {
    let (upstream, calls) = Upstream::by_hand();
    let gateway = Setup::before(&upstream).limit(1).start();
    let mut client = gateway.asks("/events");
    let mut next = gateway.asks("/next");
    gateway.waits_for("waiting", 1);
    let mut events = begins(calls.next());
    assert_eq!(client.head().unwrap().status(), Some(200));
    // The stream has not ended, and nevertheless the other request runs.
    calls.next().answer("next");
    assert_eq!(next.answer().unwrap().text(), "next");
    gateway.is_idle_again();
    assert_eq!(gateway.count("streams"), 1);
    for _ in 0..3 {
        events.send(EVENT);
        assert_eq!(client.bytes(EVENT.len()).unwrap(), EVENT.as_bytes());
    }
    events.send("0\r\n\r\n");
    assert_eq!(client.bytes(5).unwrap(), b"0\r\n\r\n");
    gateway.waits_for("streams", 0);
    eventually("both are counted", || gateway.outcome("served") == 2);
    client.send(get("/again"));
    calls.next().answer("again");
    assert_eq!(client.answer().unwrap().text(), "again");
}

#[test]
fn a_client_that_leaves_ends_them() {
    let (upstream, calls) = Upstream::by_hand();
    let gateway = Setup::before(&upstream).limit(1).start();
    let mut client = gateway.asks("/events");
    let call = begins(calls.next());
    client.head().unwrap();
    gateway.waits_for("streams", 1);
    drop(client);
    gateway.waits_for("streams", 0);
    eventually("the upstream sees it", || call.is_abandoned());
}

#[test]
fn they_may_be_silent_for_as_long_as_they_like() {
    let (upstream, calls) = Upstream::by_hand();
    let gateway = Setup::before(&upstream)
        .set("upstream.idle_timeout", "'100ms'")
        .set("upstream.response_timeout", "'100ms'")
        .set("upstream.total_timeout", "'100ms'")
        .start();
    let mut client = gateway.asks("/events");
    let mut events = begins(calls.next());
    client.head().unwrap();
    // A response that is not an event stream is cut off after the same pause.
    let mut cut = gateway.asks("/cut");
    calls.next().send("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc");
    assert_eq!(cut.answer(), Err(Broken::Cut));
    events.send(EVENT);
    assert_eq!(client.bytes(EVENT.len()).unwrap(), EVENT.as_bytes());
}

#[test]
fn one_stream_too_many_is_refused() {
    let (upstream, calls) = Upstream::by_hand();
    let gateway = Setup::before(&upstream).limit(1).set("client_limits.streams", "1").start();
    let mut first = gateway.asks("/events");
    let _events = begins(calls.next());
    first.head().unwrap();
    let mut second = gateway.asks("/events");
    let call = begins(calls.next());
    let answer = second.answer().unwrap();
    assert_eq!(answer.status(), Some(503));
    assert!(answer.field("proxy-status").unwrap().ends_with("details=\"client_limits.streams\""));
    eventually("the upstream sees it", || call.is_abandoned());
    gateway.is_idle_again();
    // Other answers are not counted as streams.
    let mut other = gateway.asks("/other");
    calls.next().answer("other");
    assert_eq!(other.answer().unwrap().text(), "other");
}

#[test]
fn those_that_break_off_look_broken() {
    let (upstream, calls) = Upstream::by_hand();
    let gateway = Setup::before(&upstream).start();
    let mut client = gateway.asks("/events");
    let mut call = begins(calls.next());
    call.send(EVENT);
    client.head().unwrap();
    client.bytes(EVENT.len()).unwrap();
    call.close();
    assert_ne!(client.rest(), b"0\r\n\r\n");
    gateway.waits_for("streams", 0);
    eventually("it is counted", || gateway.outcome("upstream_error") == 1);
}

#[test]
fn those_of_http_2_are_the_same() {
    let (upstream, calls) = Upstream::by_hand();
    let gateway = Setup::before(&upstream).limit(1).start();
    let mut client = Http2::connect(gateway.gateway().http());
    let mut events = client.asks("/events");
    let call = begins(calls.next());
    gateway.waits_for("streams", 1);
    assert_eq!(gateway.count("running"), 0);
    let next = client.asks("/next");
    calls.next().answer("next");
    assert_eq!(next.answer().unwrap().text(), "next");
    events.reset();
    gateway.waits_for("streams", 0);
    eventually("the upstream sees it", || call.is_abandoned());
}
