//! Tests of workers that panic, each in its own gateway on loopback.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use bywash_config::{AdminAddress, Config};

use crate::process::panics::Trap;
use crate::{Gateway, Inheritance};

/// Starts a gateway with one worker in front of an upstream that never answers `/held` and answers
/// everything else at once.
fn gateway() -> Gateway {
    let upstream = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = upstream.local_addr().unwrap();
    std::thread::spawn(move || {
        let mut held = Vec::new();
        for stream in upstream.incoming() {
            let mut stream = stream.unwrap();
            let mut request = [0; 4096];
            let length = stream.read(&mut request).unwrap_or(0);
            if request[..length].starts_with(b"GET /held") {
                held.push(stream);
                continue;
            }
            let _ = stream
                .write_all(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok");
        }
    });
    let text = format!(
        "version = 1\nmode = 'enforce'\nupstream.server = 'http://{address}'\nlisten.http = '127.0.0.1:0'\n\
         listen.admin = '127.0.0.1:0'\nlisten.workers = 1\nlog.access = 'off'\n"
    );
    let Ok((config, _)) = Config::parse(&text, "test") else { panic!("{text}") };
    crate::start(config, Inheritance::default()).unwrap()
}

fn asks(address: SocketAddr, target: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let head = format!("GET {target} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).unwrap();
    stream
}

/// Reads the whole answer. Returns what has arrived if the connection was cut off.
fn answer(mut stream: TcpStream) -> String {
    let mut text = String::new();
    let _ = stream.read_to_string(&mut text);
    text
}

fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(20);
    while !holds() {
        assert!(Instant::now() < end, "this never came about: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn operators(gateway: &Gateway, target: &str) -> String {
    let AdminAddress::Tcp(address) = gateway.admin() else { panic!("it is an address") };
    answer(asks(address, target))
}

fn is_ready(gateway: &Gateway) -> bool {
    operators(gateway, "/readyz").starts_with("HTTP/1.1 200")
}

fn count(gateway: &Gateway, sample: &str) -> u64 {
    let text = operators(gateway, "/metrics");
    let line = text.lines().find_map(|line| line.strip_prefix(sample)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("no {sample} in\n{text}")).parse().unwrap()
}

const WORKER_PANICS: &str = "bywash_panics_total{thread=\"worker\"}";

/// Checks that a worker recovers from a panic of one of its tasks at `trap`, which `spring` sets
/// off. The worker must become unready, release everything that its requests held, and serve again.
fn a_worker_starts_again_after(trap: Trap, spring: impl Fn(&Gateway)) {
    let gateway = gateway();
    let shared = &gateway.shared;
    let held = asks(gateway.http(), "/held");
    eventually("a request runs", || shared.driver.status().running == 1);
    let no_restart = shared.traps.restart.lock().unwrap();
    shared.traps.set(trap);
    spring(&gateway);
    eventually("/readyz says no", || !is_ready(&gateway));
    assert_eq!(count(&gateway, WORKER_PANICS), 1);
    assert_eq!(answer(held), "", "the worker's connections are cut off");
    eventually("its slot is free", || shared.driver.status().running == 0);
    eventually("no connection is counted", || shared.connections.open() == 0);
    drop(no_restart);
    eventually("/readyz says yes", || is_ready(&gateway));
    assert!(answer(asks(gateway.http(), "/")).ends_with("ok"));
    assert_eq!(count(&gateway, "bywash_worker_restarts_total"), 1);
    let mut liveness = gateway.liveness();
    liveness.is_alive();
    eventually("its heart beats", || liveness.is_alive());
}

#[test]
fn a_worker_whose_accept_loop_panics_starts_again() {
    a_worker_starts_again_after(Trap::Accept, |gateway| {
        assert_eq!(answer(asks(gateway.http(), "/")), "");
    });
}

#[test]
fn a_worker_whose_tick_panics_starts_again() {
    a_worker_starts_again_after(Trap::Tick, |_| ());
}

#[test]
fn a_panic_of_a_connection_ends_that_connection_and_is_counted() {
    let gateway = gateway();
    let held = asks(gateway.http(), "/held");
    eventually("a request runs", || gateway.shared.driver.status().running == 1);
    gateway.shared.traps.set(Trap::Connection);
    assert_eq!(answer(asks(gateway.http(), "/")), "");
    assert_eq!(count(&gateway, WORKER_PANICS), 1);
    assert!(answer(asks(gateway.http(), "/")).ends_with("ok"));
    assert!(is_ready(&gateway));
    assert_eq!(count(&gateway, "bywash_worker_restarts_total"), 0);
    assert_eq!(gateway.shared.driver.status().running, 1, "the other connection goes on");
    drop(held);
    eventually("no connection is counted", || gateway.shared.connections.open() == 0);
}

#[test]
fn a_worker_that_hangs_is_not_alive() {
    let gateway = gateway();
    let hangs = gateway.shared.traps.hang.lock().unwrap();
    gateway.shared.traps.set(Trap::Hang);
    eventually("it hangs", || !gateway.shared.traps.is_set(Trap::Hang));
    // The first call takes note of the heartbeats up to now.
    let mut liveness = gateway.liveness();
    liveness.is_alive();
    assert!(!liveness.is_alive(), "the watchdog is fed");
    drop(hangs);
    eventually("its heart beats again", || liveness.is_alive());
}
