//! Tests of the slot of a client that has left, for each value of `upstream.departures`: what the
//! application notices of disconnects.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::net::UnixListener;
use std::time::{Duration, Instant};

use bywash_units::TimeSpan;

use crate::departures::{fin, half, reset};
use crate::setup::{Running, Setup, eventually, get, post};
use crate::upstream::{Call, Calls, Upstream};

fn one_slot_where(departures: &str) -> (Upstream, Calls, Running) {
    let (upstream, calls) = Upstream::by_hand_working_on();
    let gateway = Setup::before(&upstream).limit(1);
    let gateway = gateway.set("upstream.departures", &format!("'{departures}'")).start();
    (upstream, calls, gateway)
}

/// Checks that the next request waits until `end`, while the application works for a client that
/// has left. If `is_told`, the gateway closes its connection to the application when the client
/// leaves.
fn is_held_until(departures: &str, bytes: &str, end: impl Fn(Call), is_told: bool) {
    let (_upstream, calls, gateway) = one_slot_where(departures);
    for leave in [fin, reset, half] {
        let client = gateway.sends(bytes);
        let call = calls.next();
        leave(client);
        gateway.waits_for("departed", 1);
        assert_eq!(gateway.metric("bywash_departed"), 1.0);
        let mut next = gateway.asks("/next");
        gateway.waits_for("waiting", 1);
        if is_told {
            eventually("the upstream is told", || call.is_abandoned());
        }
        assert_eq!((gateway.count("running"), calls.is_empty()), (1, true));
        assert_eq!(call.is_abandoned(), is_told);
        end(call);
        calls.next().answer("next");
        assert_eq!(next.answer().unwrap().text(), "next");
        gateway.is_idle_again();
        assert_eq!(gateway.count("departed"), 0);
    }
    eventually("all are counted", || gateway.outcome("orphaned") == 3);
}

#[test]
fn is_held_by_default_until_the_server_closes_or_answers() {
    is_held_until("auto", &get("/"), Call::close, true);
    is_held_until("auto", &get("/"), |call| call.answer("late"), true);
    is_held_until("auto", &post("/", "abc"), Call::close, true);
}

#[test]
fn is_held_where_departures_go_unnoticed_and_the_server_is_told_nothing() {
    is_held_until("unnoticed", &get("/"), |call| call.answer("late"), false);
    is_held_until("unnoticed", &post("/", "abc"), Call::close, false);
}

#[test]
fn is_held_while_the_answer_has_not_begun_whatever_comes_before_it() {
    let hints = |mut call: Call| {
        call.send("HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\n");
        call.answer("late");
    };
    is_held_until("unnoticed", &get("/"), hints, false);
}

#[test]
fn is_free_at_once_where_departures_are_noticed() {
    let (_upstream, calls, gateway) = one_slot_where("noticed");
    for leave in [fin, reset, half] {
        let client = gateway.asks("/");
        let call = calls.next();
        leave(client);
        gateway.is_idle_again();
        eventually("the upstream sees it", || call.is_abandoned());
    }
}

/// Returns a request with a part of its body. The rest is never sent.
fn half_a_post() -> String {
    "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n12345\r\n".to_owned()
}

#[test]
fn is_free_at_once_if_the_server_waits_for_the_rest_of_a_body() {
    for departures in ["auto", "unnoticed"] {
        let (upstream, _calls) = Upstream::by_hand();
        let gateway = Setup::before(&upstream).limit(1).set("queue.body_buffer", "'1B'");
        let gateway = gateway.set("upstream.departures", &format!("'{departures}'")).start();
        let client = gateway.sends(half_a_post());
        eventually("the server reads", || upstream.received().contains("12345"));
        fin(client);
        gateway.is_idle_again();
        let received = upstream.received();
        assert!(!received.contains("0\r\n\r\n"), "no end of the body follows: {received}");
    }
}

#[test]
fn is_held_if_the_server_works_on_without_the_rest_of_a_body() {
    let upstream = Upstream::script(|mut wire| {
        let _ = wire.bytes(1);
        std::thread::sleep(Duration::from_secs(3600));
    });
    let gateway = Setup::before(&upstream).limit(1).set("queue.body_buffer", "'1B'");
    let gateway = gateway.set("upstream.response_timeout", "'4s'").start();
    let client = gateway.sends(half_a_post());
    // Before the server has the request, the request may still be on its way.
    eventually("the server works", || upstream.received().starts_with("POST"));
    fin(client);
    gateway.waits_for("departed", 1);
    gateway.is_idle_again();
}

#[test]
fn is_held_no_longer_than_the_answer_might_have_taken() {
    let check = |departures: &str| {
        let (upstream, calls) = Upstream::by_hand_working_on();
        let gateway = Setup::before(&upstream).limit(1);
        let gateway = gateway.set("upstream.response_timeout", "'4s'");
        let gateway = gateway.set("upstream.departures", &format!("'{departures}'")).start();
        let client = gateway.asks("/");
        let call = calls.next();
        fin(client);
        gateway.waits_for("departed", 1);
        gateway.is_idle_again();
        eventually("the upstream sees it", || call.is_abandoned());
        assert_eq!(gateway.outcome("orphaned"), 1);
    };
    // Both checks wait for the whole timeout, so they run side by side.
    std::thread::scope(|scope| {
        for departures in ["auto", "unnoticed"] {
            scope.spawn(move || check(departures));
        }
    });
}

#[test]
fn is_none_of_a_request_that_is_only_observed() {
    let (upstream, calls) = Upstream::by_hand_working_on();
    let gateway = Setup::before(&upstream).set("mode", "'observe'");
    let gateway = gateway.set("upstream.departures", "'unnoticed'").start();
    let client = gateway.asks("/");
    let call = calls.next();
    fin(client);
    eventually("the upstream sees it", || call.is_abandoned());
    gateway.waits_for_outcome("orphaned", 1);
    assert_eq!(gateway.count("departed"), 0);
}

/// Starts a gateway whose only slot is held for a client that has left.
fn departed() -> (Upstream, Calls, Running, Call) {
    let (upstream, calls, gateway) = one_slot_where("unnoticed");
    let client = gateway.asks("/");
    let call = calls.next();
    fin(client);
    gateway.waits_for("departed", 1);
    (upstream, calls, gateway, call)
}

#[test]
fn counts_as_wasted_work_while_it_is_held() {
    let (_upstream, _calls, gateway, call) = departed();
    let wasted = || gateway.metric("bywash_work_seconds_total{class=\"other\",kind=\"wasted\"}");
    let before = wasted();
    let since = Instant::now();
    eventually("time passes", || since.elapsed() > Duration::from_millis(20));
    let held = since.elapsed();
    call.answer("late");
    gateway.is_idle_again();
    eventually("the work is counted", || wasted() >= before + held.as_secs_f64());
}

/// A reload does not change how the slot of a running request is held.
#[test]
fn is_held_across_a_reload() {
    let (upstream, calls, gateway, call) = departed();
    let noticed = Setup::before(&upstream).limit(1).set("upstream.departures", "'noticed'");
    gateway.reload(&noticed).unwrap();
    let mut next = gateway.asks("/next");
    gateway.waits_for("waiting", 1);
    assert_eq!((gateway.count("departed"), call.is_abandoned()), (1, false));
    call.answer("late");
    let second = calls.next();
    assert_eq!(gateway.count("departed"), 0);
    second.answer("next");
    assert_eq!(next.answer().unwrap().text(), "next");
}

#[test]
fn does_not_keep_a_gateway_that_stops() {
    let (_upstream, _calls, gateway, call) = departed();
    assert_eq!(gateway.into_gateway().stop(TimeSpan::from_secs(3600)), 0);
    eventually("the connection is closed", || call.is_abandoned());
}

#[test]
fn is_held_until_a_server_on_a_unix_socket_has_closed() {
    let path = std::env::temp_dir().join(format!("bywash-held-{}", std::process::id()));
    let listener = UnixListener::bind(&path).unwrap();
    let setup = Setup::before_address(([127, 0, 0, 1], 1).into()).limit(1);
    let gateway = setup.servers(&[format!("unix:{}", path.display())]).start();
    let client = gateway.asks("/");
    let (server, _) = listener.accept().unwrap();
    let mut server = BufReader::new(server);
    let mut line = String::new();
    while line != "\r\n" {
        line.clear();
        server.read_line(&mut line).unwrap();
    }
    fin(client);
    gateway.waits_for("departed", 1);
    assert_eq!(server.read(&mut [0]).unwrap(), 0, "this side of the connection has ended");
    assert_eq!(gateway.count("running"), 1);
    drop(server);
    gateway.is_idle_again();
    std::fs::remove_file(path).unwrap();
}
