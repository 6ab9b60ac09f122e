//! Tests of stopping: requests that have begun are finished, and no new ones begin.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread::JoinHandle;

use bywash_gateway::{Gateway, Inheritance};
use bywash_handover::Name;
use bywash_units::TimeSpan;

use crate::setup::{Running, Setup, admin, eventually, get, post};
use crate::upstream::{Calls, Upstream};
use crate::wire::{BOUND, Broken, Wire};

fn one_slot() -> (Upstream, Calls, Running) {
    let (upstream, calls) = Upstream::by_hand();
    let gateway = Setup::before(&upstream).limit(1).start();
    (upstream, calls, gateway)
}

/// Begins to stop the gateway. The thread returns the number of connections that were still open at
/// the end.
fn stop(gateway: Running, grace: TimeSpan) -> (JoinHandle<usize>, SocketAddr, SocketAddr) {
    let (http, operators) = (gateway.gateway().http(), gateway.admin());
    let gateway = gateway.into_gateway();
    let stopping = std::thread::spawn(move || gateway.stop(grace));
    (stopping, http, operators)
}

fn refuses(address: SocketAddr) -> bool {
    TcpStream::connect_timeout(&address, BOUND).is_err()
}

const LONG: TimeSpan = TimeSpan::from_secs(20);

#[test]
fn an_idle_gateway_stops_at_once_and_leaves_nothing() {
    let (_upstream, _calls, gateway) = one_slot();
    let (http, operators) = (gateway.gateway().http(), gateway.admin());
    assert_eq!(gateway.into_gateway().stop(LONG), 0);
    assert!(refuses(http) && refuses(operators));
}

#[test]
fn what_runs_and_what_waits_is_finished_and_nothing_new_begins() {
    let (_upstream, calls, gateway) = one_slot();
    let mut idle = gateway.client();
    idle.send(get("/before"));
    calls.next().answer("");
    idle.answer().unwrap();
    let mut running = gateway.asks("/runs");
    let call = calls.next();
    let mut waiting = gateway.sends(post("/waits", "body"));
    gateway.waits_for("waiting", 1);
    let (stopping, http, operators) = stop(gateway, LONG);
    assert!(idle.is_closed());
    eventually("new connections are refused", || refuses(http));
    assert_eq!(admin(operators, "/readyz").status(), Some(503));
    assert_eq!(admin(operators, "/livez").status(), Some(200));
    assert!(!stopping.is_finished());
    call.answer("one");
    let answer = running.answer().unwrap();
    assert_eq!((answer.text().as_str(), answer.field("connection")), ("one", Some("close")));
    assert!(running.is_closed());
    let call = calls.next();
    assert_eq!(call.request.text(), "body");
    call.answer("two");
    assert_eq!(waiting.answer().unwrap().text(), "two");
    assert!(waiting.is_closed());
    assert_eq!(stopping.join().unwrap(), 0);
    assert!(refuses(operators));
}

#[test]
fn an_answer_that_has_begun_is_finished() {
    let (_upstream, calls, gateway) = one_slot();
    let mut client = gateway.asks("/");
    let mut call = calls.next();
    call.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n");
    client.head().unwrap();
    let (stopping, http, _) = stop(gateway, LONG);
    eventually("new connections are refused", || refuses(http));
    call.send("3\r\ndef\r\n0\r\n\r\n");
    assert_eq!(client.rest(), b"3\r\nabc\r\n3\r\ndef\r\n0\r\n\r\n");
    assert_eq!(stopping.join().unwrap(), 0);
}

#[test]
fn a_pipelined_request_does_not_begin_during_a_stop() {
    let (_upstream, calls, gateway) = one_slot();
    let mut client = gateway.sends(get("/1") + &get("/2"));
    let call = calls.next();
    let (stopping, http, _) = stop(gateway, LONG);
    eventually("new connections are refused", || refuses(http));
    call.answer("");
    assert_eq!(client.answer().unwrap().field("connection"), Some("close"));
    assert!(client.is_closed());
    assert!(calls.is_empty());
    assert_eq!(stopping.join().unwrap(), 0);
}

#[test]
fn one_that_leaves_during_a_stop_holds_nothing_up() {
    let (_upstream, calls, gateway) = one_slot();
    let running = gateway.asks("/");
    let _call = calls.next();
    let waiting = gateway.asks("/");
    gateway.waits_for("waiting", 1);
    let (stopping, http, _) = stop(gateway, LONG);
    eventually("new connections are refused", || refuses(http));
    drop((running, waiting));
    assert_eq!(stopping.join().unwrap(), 0);
}

#[test]
fn a_request_that_does_not_end_is_counted_when_the_grace_is_over() {
    let (_upstream, calls, gateway) = one_slot();
    let _running = gateway.asks("/runs");
    let _call = calls.next();
    let (stopping, ..) = stop(gateway, TimeSpan::from_millis(100));
    assert_eq!(stopping.join().unwrap(), 1);
}

#[test]
fn a_request_that_does_not_end_is_cut_when_the_grace_is_over() {
    let (_upstream, calls, gateway) = one_slot();
    let mut running = gateway.asks("/runs");
    let call = calls.next();
    let (stopping, ..) = stop(gateway, TimeSpan::from_millis(100));
    assert_eq!(stopping.join().unwrap(), 1);
    assert!(matches!(running.answer(), Err(Broken::Closed | Broken::Cut)));
    eventually("the upstream is let go", || call.is_abandoned());
}

/// Returns a copy of the admin listener's socket, as another process has it after a handover.
fn of_another(gateway: &Gateway) -> TcpListener {
    let mut sockets = gateway.sockets().into_iter();
    let (_, admin) = sockets.find(|(name, _)| *name == Name::Admin).unwrap();
    admin.try_clone_to_owned().unwrap().into()
}

/// Checks that every new connection goes to the process that holds this socket.
fn gets_all(other: &TcpListener) {
    let operators = [(); 20].map(|()| Wire::connect(other.local_addr().unwrap()));
    let mut accepted = Vec::new();
    eventually("the other process gets every connection", || {
        // Each round of the loop accepts one connection, so that any other process has time to
        // accept some.
        accepted.extend(other.accept());
        accepted.len() == operators.len()
    });
}

#[test]
fn operators_are_let_in_no_earlier_than_clients() {
    let upstream = Upstream::echo();
    let config = Setup::before(&upstream).config();
    let gateway = bywash_gateway::prepare(config, Inheritance::default()).unwrap();
    let other = of_another(&gateway);
    gets_all(&other);
    let address = other.local_addr().unwrap();
    drop(other);
    gateway.open();
    assert_eq!(admin(address, "/readyz").text(), "ready\n");
}

#[test]
fn who_gives_way_leaves_operators_to_the_next_and_serves_those_it_has() {
    let (_upstream, calls, gateway) = one_slot();
    let asks = "GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let mut kept = Wire::connect(gateway.admin());
    kept.send(asks);
    assert_eq!(kept.answer().unwrap().text(), "ready\n");
    let mut running = gateway.asks("/runs");
    let call = calls.next();
    let next = of_another(gateway.gateway());
    let old = gateway.into_gateway();
    let giving = std::thread::spawn(move || old.give_way(LONG));
    // Each response must close its connection from now on, because this process must get no further
    // request. A response that began just before may still keep it open.
    eventually("an answer here is the last", || {
        kept.send(asks);
        kept.answer().unwrap().field("connection") == Some("close")
    });
    assert!(kept.is_closed());
    gets_all(&next);
    call.answer("");
    running.answer().unwrap();
    assert_eq!(giving.join().unwrap(), 0);
}

#[test]
fn a_connection_that_has_sent_nothing_does_not_hold_a_stop_up() {
    let (_upstream, _calls, gateway) = one_slot();
    let _silent: Wire = gateway.client();
    gateway.waits_for("connections", 1);
    let (stopping, ..) = stop(gateway, TimeSpan::from_secs(4));
    assert_eq!(stopping.join().unwrap(), 0);
}

#[test]
fn a_gateway_that_is_dropped_lets_go_of_everything() {
    let path = std::path::PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("dropped.log");
    let is_open = || {
        let files = std::fs::read_dir("/proc/self/fd").unwrap().flatten();
        files.filter_map(|file| std::fs::read_link(file.path()).ok()).any(|file| file == path)
    };
    let upstream = Upstream::echo();
    let log = format!("'{}'", path.display());
    let gateway = Setup::before(&upstream).set("log.access", &log).start();
    assert!(is_open());
    drop(gateway.into_gateway());
    // The log is closed when the last thread of the gateway has ended.
    eventually("the log is closed", || !is_open());
}
