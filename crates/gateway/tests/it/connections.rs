//! Tests of the eviction of client connections when as many are open as allowed.
//!
//! Clients at 127.0.0.2, 127.0.0.3 and so on count as different owners.

use crate::http2::{END_HEADERS, END_STREAM, Frames, GET, GOAWAY, HEADERS, literal};
use crate::setup::{Running, Setup, eventually, get};
use crate::upstream::Upstream;
use crate::wire::Wire;

fn with_room_for(upstream: &Upstream, connections: usize) -> Setup {
    Setup::before(upstream).set("client_limits.connections", &connections.to_string())
}

/// Connects a client at 127.0.0.`source`.
fn client(gateway: &Running, source: u8) -> Wire {
    Wire::connect_from(source, gateway.gateway().http())
}

/// Connects a client that is served and then idle.
fn idle(gateway: &Running, source: u8) -> Wire {
    let mut client = client(gateway, source);
    client.send(get("/"));
    assert_eq!(client.answer().expect("there is room").text(), "/");
    client
}

fn idle_ones(gateway: &Running, source: u8, count: usize) -> Vec<Wire> {
    (0..count).map(|_| idle(gateway, source)).collect()
}

/// Returns how many of these clients' connections the gateway has closed.
fn closed(clients: &mut [Wire]) -> usize {
    clients.iter_mut().filter_map(|client| (!client.has_nothing_to_read()).then_some(())).count()
}

fn still_serves(client: &mut Wire) {
    client.send(get("/again"));
    assert_eq!(client.answer().expect("it is open").text(), "/again");
}

fn evicted(gateway: &Running, why: &str) -> f64 {
    gateway.metric(&format!("bywash_evicted_connections_total{{why=\"{why}\"}}"))
}

/// Connects a client until it is served, at the first attempt or at a later one.
fn gets_in(gateway: &Running, source: u8) -> Wire {
    let mut found = None;
    eventually("a newcomer is served", || {
        let mut client = client(gateway, source);
        let served = client.try_send(get("/")).is_ok() && client.answer().is_ok();
        found = served.then_some(client);
        found.is_some()
    });
    found.expect("it was served")
}

#[test]
fn an_idle_connection_of_the_address_that_has_most_makes_room() {
    let upstream = Upstream::echo();
    let gateway = with_room_for(&upstream, 6).start();
    let mut few = idle_ones(&gateway, 2, 2);
    let mut many = idle_ones(&gateway, 3, 4);
    let mut newcomer = idle(&gateway, 4);
    eventually("one of the many is closed", || closed(&mut many) == 1);
    assert_eq!(evicted(&gateway, "idle"), 1.0);
    assert_eq!(gateway.metric("bywash_refused_connections_total"), 0.0);
    assert_eq!(gateway.count("connections"), 6);
    few.iter_mut().for_each(still_serves);
    still_serves(&mut newcomer);
}

#[test]
fn newcomers_get_in_whatever_worker_the_idle_ones_are_on() {
    let upstream = Upstream::echo();
    let gateway = with_room_for(&upstream, 8).set("listen.workers", "3").start();
    let mut held = idle_ones(&gateway, 2, 7);
    let mut newcomers: Vec<Wire> = (10..40).map(|source| idle(&gateway, source)).collect();
    eventually("all of the address with most but one are gone", || closed(&mut held) >= 6);
    eventually("as many as may be", || gateway.count("connections") == 8);
    newcomers.extend(held);
    eventually("all others are closed", || closed(&mut newcomers) == 37 - 8);
    newcomers.retain_mut(Wire::has_nothing_to_read);
    newcomers.iter_mut().for_each(still_serves);
}

#[test]
fn a_connection_that_is_used_stays_and_the_one_that_is_idle_for_longest_goes() {
    let upstream = Upstream::echo();
    let gateway = with_room_for(&upstream, 3).start();
    let mut clients = idle_ones(&gateway, 2, 3);
    // Workers count idle time in quarters of a second. Wait until some have passed.
    let begun = std::time::Instant::now();
    while begun.elapsed() < std::time::Duration::from_secs(1) {
        still_serves(&mut clients[0]);
        still_serves(&mut clients[2]);
    }
    idle(&gateway, 3);
    assert!(clients[1].is_closed());
    still_serves(&mut clients[0]);
    still_serves(&mut clients[2]);
}

#[test]
fn connections_that_say_nothing_make_room_after_a_while() {
    let upstream = Upstream::echo();
    let gateway = with_room_for(&upstream, 4).start();
    let mut silent: Vec<Wire> = (0..3).map(|_| client(&gateway, 2)).collect();
    let mut trickling = client(&gateway, 2);
    trickling.send("GET / HTTP/1.1\r\nHost: a\r\nX-Slow: ");
    gateway.waits_for("connections", 4);
    let mut newcomer = gets_in(&gateway, 3);
    assert!(evicted(&gateway, "silent") >= 1.0);
    still_serves(&mut newcomer);
    eventually("one of them is closed", || {
        closed(&mut silent) + usize::from(!trickling.has_nothing_to_read()) >= 1
    });
}

#[test]
fn one_address_does_not_fill_the_reserve_even_with_requests_that_run() {
    let (upstream, calls) = Upstream::by_hand();
    let gateway = with_room_for(&upstream, 20).limit(100).start();
    let mut running: Vec<Wire> = (0..18).map(|_| client(&gateway, 2)).collect();
    for client in &mut running {
        client.send(get("/runs"));
    }
    let kept: Vec<_> = (0..18).map(|_| calls.next()).collect();
    assert!(client(&gateway, 2).is_closed());
    for source in [3, 4] {
        let mut other = client(&gateway, source);
        other.send(get("/other"));
        calls.next().answer("other");
        assert_eq!(other.answer().unwrap().text(), "other");
        std::mem::forget(other);
    }
    for call in kept {
        call.answer("runs");
    }
    for client in &mut running {
        assert_eq!(client.answer().unwrap().text(), "runs");
    }
}

#[test]
fn an_office_of_five_hundred_behind_one_address_is_served_beside_one_that_takes_all_it_can() {
    bywash_sentry::raise_file_limit();
    let upstream = Upstream::echo();
    let gateway = with_room_for(&upstream, 1200).start();
    let mut hostile: Vec<Wire> = (0..1080).map(|_| idle(&gateway, 66)).collect();
    let mut office: Vec<Wire> = (0..500).map(|_| idle(&gateway, 2)).collect();
    office.iter_mut().for_each(still_serves);
    eventually("the other has made room", || closed(&mut hostile) == 380);
    // From now on, a new connection of the hostile address replaces one of its own.
    let _more: Vec<Wire> = (0..50).map(|_| idle(&gateway, 66)).collect();
    office.iter_mut().for_each(still_serves);
}

/// Connects a client whose last request was of a session that had been served before.
fn proven(gateway: &Running, source: u8, session: &str) -> Wire {
    let mut client = client(gateway, source);
    for _ in 0..2 {
        client.send(format!("GET / HTTP/1.1\r\nHost: a\r\nCookie: sid={session}\r\n\r\n"));
        assert_eq!(client.answer().expect("there is room").status(), Some(200));
    }
    client
}

#[test]
fn a_proven_session_keeps_its_connection_while_strangers_come_and_go() {
    let upstream = Upstream::echo();
    let gateway = with_room_for(&upstream, 10).set("client_limits.proven_reserve", "30").start();
    let mut buyers =
        [proven(&gateway, 2, "one"), proven(&gateway, 2, "two"), proven(&gateway, 2, "three")];
    // More strangers connect than there is room for, from addresses with fewer connections than the
    // buyers' address.
    let _strangers: Vec<Wire> = (10..60).map(|source| idle(&gateway, source)).collect();
    assert_eq!(evicted(&gateway, "idle"), 43.0);
    assert_eq!(evicted(&gateway, "idle_proven"), 0.0);
    buyers.iter_mut().for_each(still_serves);
}

#[test]
fn more_proven_ones_than_the_reserve_make_room_where_no_stranger_is_idle() {
    let upstream = Upstream::echo();
    let gateway = with_room_for(&upstream, 10).set("client_limits.proven_reserve", "30").start();
    let mut buyers: Vec<Wire> = (0..10_u8)
        .map(|number| proven(&gateway, 10 + number, &format!("session-{number}")))
        .collect();
    let mut newcomer = idle(&gateway, 2);
    eventually("one has made room", || closed(&mut buyers) == 1);
    assert_eq!(evicted(&gateway, "idle_proven"), 1.0);
    // The client is the only stranger, so the next new client replaces its connection.
    idle(&gateway, 3);
    assert!(newcomer.is_closed());
}

#[test]
fn the_connections_of_a_trusted_hop_stay_though_it_has_most() {
    let upstream = Upstream::echo();
    let gateway = with_room_for(&upstream, 10)
        .set("client_limits.proven_reserve", "60")
        .set("listen.trusted_proxies", "['127.0.0.9/32']")
        .start();
    let mut hop = idle_ones(&gateway, 9, 6);
    let _strangers: Vec<Wire> = (10..40).map(|source| idle(&gateway, source)).collect();
    assert_eq!(evicted(&gateway, "idle"), 26.0);
    hop.iter_mut().for_each(still_serves);
}

#[test]
fn a_client_behind_a_proxy_header_is_counted_by_the_address_in_it() {
    let upstream = Upstream::echo();
    let gateway =
        with_room_for(&upstream, 4).set("listen.proxy_protocol", "['127.0.0.0/8']").start();
    let idle = |address: &str| {
        let mut client = gateway.client();
        client.send(format!("PROXY TCP4 {address} 127.0.0.1 4096 80\r\n{}", get("/")));
        assert_eq!(client.answer().expect("there is room").text(), "/");
        client
    };
    let mut one = idle("192.0.2.1");
    let mut many: Vec<Wire> = (0..3).map(|_| idle("192.0.2.2")).collect();
    idle("192.0.2.3");
    eventually("one of the many is closed", || closed(&mut many) == 1);
    still_serves(&mut one);
}

#[test]
fn an_idle_http2_connection_is_told_that_it_ends() {
    let upstream = Upstream::echo();
    let gateway = with_room_for(&upstream, 1).start();
    let mut http2 = Frames::connect(gateway.gateway().http());
    http2.send(HEADERS, END_STREAM | END_HEADERS, 1, &literal(&GET));
    let answer = http2.next().expect("an answer");
    assert_eq!((answer.kind, answer.status()), (HEADERS, Some(200)));
    gets_in(&gateway, 2);
    let goaway = std::iter::from_fn(|| http2.next()).find(|frame| frame.kind == GOAWAY);
    assert_eq!(goaway.expect("it is told").code(), 0);
    assert_eq!(evicted(&gateway, "idle"), 1.0);
}
