//! Tests of slow clients, which hold a slot without using it.

use std::net::{SocketAddr, TcpStream};

use socket2::{Domain, SockRef, Socket, Type};

use crate::setup::{Running, Setup, eventually, get};
use crate::upstream::{Upstream, with_fields};
use crate::wire::Wire;

const LENGTHY: std::time::Duration = std::time::Duration::from_secs(20);

/// Connects a client with a receive buffer of `room` bytes.
fn narrow(address: SocketAddr, room: usize) -> Wire {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    socket.set_recv_buffer_size(room).unwrap();
    socket.connect(&address.into()).unwrap();
    let wire = Wire::new(TcpStream::from(socket));
    wire.stream.set_read_timeout(Some(LENGTHY)).unwrap();
    wire
}

#[test]
#[ignore = "takes 12 s; make test-all"]
fn an_upload_that_does_not_get_on_is_given_up() {
    let (upstream, calls) = Upstream::by_hand();
    let gateway =
        Setup::before(&upstream).limit(1).set("client_limits.body_rate", "'1000B'").start();
    let mut slow = gateway.sends("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9999\r\n\r\nabc");
    slow.stream.set_read_timeout(Some(LENGTHY)).unwrap();
    gateway.waits_for("running", 1);
    let answer = slow.answer().unwrap();
    assert_eq!((answer.status(), answer.field("connection")), (Some(408), Some("close")));
    assert!(slow.is_closed());
    gateway.is_idle_again();
    assert_eq!(gateway.metric("bywash_slow_clients_total"), 1.0);
    assert_eq!(gateway.outcome("upstream_error"), 0);
    eventually("the upstream is let go", || upstream.open() == 0);
    assert!(calls.is_empty());
}

#[test]
#[ignore = "takes 12 s; make test-all"]
fn an_upload_that_does_not_get_on_in_the_queue_is_given_up() {
    let (upstream, calls) = Upstream::by_hand();
    let gateway =
        Setup::before(&upstream).limit(1).set("client_limits.body_rate", "'1000B'").start();
    let _running = gateway.asks("/runs");
    let _call = calls.next();
    let mut slow = gateway.sends("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9999\r\n\r\nabc");
    slow.stream.set_read_timeout(Some(LENGTHY)).unwrap();
    assert_eq!(slow.answer().unwrap().status(), Some(408));
    assert_eq!(gateway.count("waiting"), 0);
    assert_eq!(gateway.count("running"), 1);
}

#[test]
#[ignore = "takes 12 s; make test-all"]
fn a_client_that_does_not_read_its_answer_is_given_up() {
    let upstream = Upstream::app(|request| match request.target() {
        "/large" => with_fields("", &"x".repeat(16 * 1024 * 1024)),
        target => with_fields("", target),
    });
    let gateway =
        Setup::before(&upstream).limit(1).set("client_limits.body_rate", "'1MiB'").start();
    let mut slow = narrow(gateway.gateway().http(), 4096);
    slow.send(get("/large"));
    gateway.waits_for("running", 1);
    let mut next = gateway.asks("/next");
    next.stream.set_read_timeout(Some(LENGTHY)).unwrap();
    assert_eq!(next.answer().unwrap().text(), "/next");
    // The slow client's connection was cut off in the middle of the response.
    SockRef::from(&slow.stream).set_recv_buffer_size(1 << 20).unwrap();
    assert!(slow.answer().is_err());
    gateway.is_idle_again();
}

/// Sends one response that takes much longer than `concurrency.too_slow`. Returns the resulting
/// limit.
fn limit_after(client: impl FnOnce(&Running) -> Wire) -> u64 {
    let upstream = Upstream::app(|request| {
        if request.target() == "/large" {
            return with_fields("", &"x".repeat(16 * 1024 * 1024));
        }
        // This sleep makes the application slow.
        std::thread::sleep(std::time::Duration::from_millis(300));
        with_fields("", "")
    });
    let setup = Setup::before(&upstream).limit(4).set("concurrency.policy", "'aimd'");
    let gateway =
        setup.set("concurrency.backoff", "0.5").set("concurrency.too_slow", "'100ms'").start();
    let mut client = client(&gateway);
    assert_eq!(client.answer().unwrap().status(), Some(200));
    gateway.is_idle_again();
    gateway.count("limit")
}

#[test]
fn a_client_that_reads_slowly_lowers_no_limit_and_a_slow_application_does() {
    let slow_client = limit_after(|gateway| {
        let mut slow = narrow(gateway.gateway().http(), 4096);
        slow.send(get("/large"));
        gateway.waits_for("running", 1);
        // This sleep makes the client slow.
        std::thread::sleep(std::time::Duration::from_millis(300));
        SockRef::from(&slow.stream).set_recv_buffer_size(1 << 20).unwrap();
        slow
    });
    let slow_application = limit_after(|gateway| gateway.asks("/"));
    assert_eq!((slow_client, slow_application), (4, 2));
}

/// A client may be slow, as long as the gateway waits for it for less than ten seconds in total.
#[test]
fn a_client_that_pauses_is_not_given_up_at_once() {
    let upstream = Upstream::app(|request| with_fields("", &request.text()));
    let gateway = Setup::before(&upstream).set("client_limits.body_rate", "'1MiB'").start();
    let mut slow = gateway.sends("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\n");
    for byte in b"slow" {
        // This sleep makes the client slow. It is not for synchronisation.
        std::thread::sleep(std::time::Duration::from_millis(100));
        slow.send([*byte]);
    }
    assert_eq!(slow.answer().unwrap().text(), "slow");
}

/// Bytes that the client sends after a close would reset the connection, so unsent bytes of the
/// response would be lost.
#[test]
fn a_last_answer_is_read_to_its_end_whatever_the_client_says_meanwhile() {
    const PIECE: usize = 16 * 1024;
    let body = "x".repeat(32 * PIECE);
    let upstream = Upstream::app(move |_| with_fields("", &body));
    let gateway = Setup::before(&upstream).start();
    let mut slow = narrow(gateway.gateway().http(), 2 * PIECE);
    slow.send("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    slow.head().unwrap();
    slow.send("\r\n");
    for piece in 0..32 {
        // This sleep makes the client slow.
        std::thread::sleep(std::time::Duration::from_millis(4));
        assert!(slow.bytes(PIECE).is_ok(), "it ends after {piece} pieces");
    }
    assert!(slow.is_closed());
}

/// The client reads slowly but steadily. Its kernel accepts no more than the client reads.
#[test]
#[ignore = "takes 15 s; make test-all"]
fn a_client_that_reads_slowly_and_steadily_is_not_given_up() {
    let upstream = Upstream::app(|_| with_fields("", &"x".repeat(16 * 1024 * 1024)));
    let gateway = Setup::before(&upstream).start();
    let mut slow = gateway.asks("/");
    for _ in 0..75 {
        // This sleep makes the client slow: 100 KiB a second.
        std::thread::sleep(std::time::Duration::from_millis(200));
        slow.bytes(20 * 1024).unwrap();
    }
    assert_eq!(gateway.count("running"), 1);
}
