//! Tests of connections that switch to another protocol: WebSocket, as far as it concerns a
//! gateway.

use std::io::{Read, Write};
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, channel};

use bywash_units::TimeSpan;

use crate::log;
use crate::setup::{Running, Setup, eventually, get, post};
use crate::upstream::{Upstream, ok};
use crate::wire::{BOUND, Broken, Message, Wire};

const ASKS: &str = "GET /chat HTTP/1.1\r\nHost: shop.example\r\nConnection: keep-alive, Upgrade\r\n\
                    Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
                    Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
const AGREES: &str = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n\
                      Upgrade: websocket\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n";

/// The upstream connections that have switched, each with the request that asked for it.
struct Agreed(Receiver<(Message, Wire)>);

impl Agreed {
    fn next(&self) -> (Message, Wire) {
        self.0.recv_timeout(BOUND).expect("a connection goes over")
    }
}

/// Starts an upstream that agrees to the requested protocol and hands the connection to the test.
/// It responds to other requests with their target.
fn agreeing() -> (Upstream, Agreed) {
    agreeing_with(AGREES)
}

fn agreeing_with(words: &'static str) -> (Upstream, Agreed) {
    let (tell, agreed) = channel();
    let tell = Mutex::new(tell);
    let upstream = Upstream::script(move |mut wire| {
        while let Ok(request) = wire.request() {
            if request.field("upgrade").is_some() {
                wire.send(words);
                let _ = tell.lock().unwrap().send((request, wire));
                return;
            }
            wire.send(ok(request.target()));
        }
    });
    (upstream, Agreed(agreed))
}

/// Returns the client's and the server's end of a tunnel.
fn tunnel(gateway: &Running, agreed: &Agreed) -> (Wire, Wire) {
    let mut client = gateway.sends(ASKS);
    let (_, server) = agreed.next();
    assert_eq!(client.head().unwrap().status(), Some(101));
    gateway.waits_for("streams", 1);
    (client, server)
}

#[test]
fn both_heads_say_what_the_connection_becomes() {
    let (upstream, agreed) = agreeing();
    let gateway = Setup::before(&upstream).start();
    let mut client = gateway.sends(ASKS);
    let (request, _server) = agreed.next();
    for (name, value) in [
        ("connection", "upgrade"),
        ("upgrade", "websocket"),
        ("host", "shop.example"),
        ("sec-websocket-version", "13"),
        ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
    ] {
        let values = request.all(name);
        assert!(matches!(values[..], [only] if only.eq_ignore_ascii_case(value)), "{request:?}");
    }
    let answer = client.head().unwrap();
    assert_eq!(answer.start, "HTTP/1.1 101 Switching Protocols");
    for (name, value) in [
        ("connection", "upgrade"),
        ("upgrade", "websocket"),
        ("sec-websocket-accept", "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="),
    ] {
        let values = answer.all(name);
        assert!(matches!(values[..], [only] if only.eq_ignore_ascii_case(value)), "{answer:?}");
    }
}

#[test]
fn bytes_go_both_ways_as_they_come() {
    let (upstream, agreed) = agreeing();
    let gateway = Setup::before(&upstream).start();
    let (mut client, mut server) = tunnel(&gateway, &agreed);
    for round in 0..5_u8 {
        client.send([b'p', b'i', 0, 0xff, round]);
        assert_eq!(server.bytes(5).unwrap(), [b'p', b'i', 0, 0xff, round]);
        server.send([b'p', b'o', b'\r', b'\n', round]);
        assert_eq!(client.bytes(5).unwrap(), [b'p', b'o', b'\r', b'\n', round]);
    }
    // Either side may send twice in a row, or send first.
    server.send("one");
    server.send("two");
    assert_eq!(client.bytes(6).unwrap(), b"onetwo");
}

#[test]
fn what_comes_behind_either_head_is_not_lost() {
    let (upstream, agreed) = agreeing_with(concat!(
        "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n",
        "hello from the server"
    ));
    let gateway = Setup::before(&upstream).start();
    let mut client = gateway.sends(format!("{ASKS}hello from the client"));
    let (_, mut server) = agreed.next();
    assert_eq!(client.head().unwrap().status(), Some(101));
    assert_eq!(client.bytes(21).unwrap(), b"hello from the server");
    assert_eq!(server.bytes(21).unwrap(), b"hello from the client");
}

#[test]
fn large_amounts_go_both_ways_at_once() {
    const SIZE: usize = 8 * 1024 * 1024;
    let (upstream, agreed) = agreeing();
    let gateway = Setup::before(&upstream).start();
    let (client, server) = tunnel(&gateway, &agreed);
    let pour = |wire: &Wire, byte: u8| {
        let mut stream = wire.stream.try_clone().unwrap();
        move || stream.write_all(&vec![byte; SIZE]).unwrap()
    };
    let drink = |wire: &Wire, byte: u8| {
        let mut stream = wire.stream.try_clone().unwrap();
        move || {
            let mut all = vec![0; SIZE];
            stream.read_exact(&mut all).unwrap();
            assert!(all.iter().all(|read| *read == byte));
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(pour(&client, b'u'));
        scope.spawn(pour(&server, b'd'));
        scope.spawn(drink(&server, b'u'));
        scope.spawn(drink(&client, b'd'));
    });
}

#[test]
fn it_holds_no_slot_and_counts_as_a_stream() {
    let (upstream, agreed) = agreeing();
    let gateway = Setup::before(&upstream).limit(1).start();
    let (client, _server) = tunnel(&gateway, &agreed);
    assert_eq!((gateway.count("running"), gateway.count("streams")), (0, 1));
    assert_eq!(gateway.metric("bywash_streams"), 1.0);
    assert_eq!(gateway.get("/other").text(), "/other");
    drop(client);
    gateway.waits_for("streams", 0);
    eventually("both are counted", || gateway.outcome("served") == 2);
}

#[test]
fn it_waits_for_a_slot_like_any_other_request() {
    let (upstream, calls) = Upstream::by_hand();
    let gateway = Setup::before(&upstream).limit(1).start();
    let _running = gateway.asks("/runs");
    let call = calls.next();
    let mut client = gateway.sends(ASKS);
    gateway.waits_for("waiting", 1);
    assert!(client.has_nothing_to_read());
    call.answer("");
    let mut call = calls.next();
    assert_eq!(call.request.field("upgrade"), Some("websocket"));
    call.send(AGREES);
    assert_eq!(client.head().unwrap().status(), Some(101));
    gateway.is_idle_again();
}

#[test]
fn a_client_that_leaves_ends_it() {
    let (upstream, agreed) = agreeing();
    let gateway = Setup::before(&upstream).start();
    for leave in [drop, Wire::reset] {
        let (client, mut server) = tunnel(&gateway, &agreed);
        leave(client);
        assert!(server.is_closed());
        gateway.waits_for("streams", 0);
        gateway.waits_for("connections", 0);
    }
}

#[test]
fn an_upstream_that_closes_ends_it_and_its_last_words_arrive() {
    let (upstream, agreed) = agreeing();
    let gateway = Setup::before(&upstream).start();
    let (mut client, mut server) = tunnel(&gateway, &agreed);
    server.send("goodbye");
    drop(server);
    assert_eq!(client.rest(), b"goodbye");
    // The tunnel has ended although the client has not closed its side.
    gateway.waits_for("streams", 0);
    gateway.waits_for("connections", 0);
}

#[test]
fn an_upstream_that_resets_ends_it() {
    let (upstream, agreed) = agreeing();
    let gateway = Setup::before(&upstream).start();
    let (mut client, server) = tunnel(&gateway, &agreed);
    server.reset();
    client.rest();
    gateway.waits_for("streams", 0);
    gateway.waits_for("connections", 0);
}

#[test]
fn one_stream_too_many_is_refused_and_holds_nothing() {
    let (upstream, agreed) = agreeing();
    let gateway = Setup::before(&upstream).limit(1).set("client_limits.streams", "1").start();
    let (first, _server) = tunnel(&gateway, &agreed);
    let mut second = gateway.sends(ASKS);
    let (_, mut server) = agreed.next();
    let answer = second.answer().unwrap();
    assert_eq!(answer.status(), Some(503));
    assert_eq!(
        answer.field("proxy-status"),
        Some("bywash; error=connection_limit_reached; details=\"client_limits.streams\"")
    );
    assert!(server.is_closed());
    gateway.is_idle_again();
    assert_eq!(gateway.count("streams"), 1);
    drop(first);
    gateway.waits_for("streams", 0);
    tunnel(&gateway, &agreed);
}

#[test]
fn any_other_answer_goes_on_as_http() {
    for status in ["200 OK", "403 Forbidden", "426 Upgrade Required"] {
        let answer = format!("HTTP/1.1 {status}\r\nContent-Length: 2\r\n\r\nno");
        let upstream = Upstream::app(move |_| answer.clone().into_bytes());
        let gateway = Setup::before(&upstream).limit(1).start();
        let mut client = gateway.sends(ASKS);
        for _ in 0..2 {
            let answer = client.answer().unwrap();
            assert_eq!(answer.start, format!("HTTP/1.1 {status}"));
            assert_eq!(answer.text(), "no");
            client.send(get("/next"));
        }
        assert_eq!(gateway.count("streams"), 0);
        // A connection on which another protocol was offered is not used again.
        assert_eq!(upstream.accepted(), 2);
    }
}

#[test]
fn an_upstream_that_goes_over_unasked_has_failed() {
    let requests = [
        get("/"),
        // With a body, it would be unclear where the body ends.
        post("/", "abc").replace("\r\n\r\n", "\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n"),
        // HTTP/1.0 has no upgrades.
        ASKS.replace("HTTP/1.1", "HTTP/1.0"),
        // The field without the option in `Connection` means nothing.
        get("/").replace("\r\n\r\n", "\r\nUpgrade: websocket\r\n\r\n"),
    ];
    for request in requests {
        let upstream = Upstream::app(|_| AGREES.into());
        let gateway = Setup::before(&upstream).limit(1).start();
        let answer = gateway.sends(&request).answer().unwrap();
        assert_eq!(answer.status(), Some(502), "{request}");
        assert!(!upstream.received().contains("pgrade:"), "{request}");
        gateway.is_idle_again();
        assert_eq!((gateway.count("streams"), gateway.outcome("upstream_error")), (0, 1));
    }
}

#[test]
fn what_would_pass_unseen_is_not_gone_over_to() {
    for protocol in ["h2c", "HTTP/2.0", "TLS/1.0", "websocket, h2c"] {
        let upstream = Upstream::echo();
        let gateway = Setup::before(&upstream).start();
        let asks = ASKS.replace("websocket\r\nSec", &format!("{protocol}\r\nSec"));
        let mut client = gateway.sends(asks);
        assert_eq!(client.answer().unwrap().text(), "/chat", "{protocol}");
        assert!(!upstream.received().contains("pgrade:"), "{}", upstream.received());
    }
}

#[test]
fn a_stop_cuts_it_when_the_grace_is_over() {
    let (upstream, agreed) = agreeing();
    let gateway = Setup::before(&upstream).start();
    let (mut client, mut server) = tunnel(&gateway, &agreed);
    let stopping =
        std::thread::spawn(move || gateway.into_gateway().stop(TimeSpan::from_millis(200)));
    // The tunnel continues until the grace is over.
    client.send("ping");
    assert_eq!(server.bytes(4).unwrap(), b"ping");
    assert_eq!(stopping.join().unwrap(), 1);
    assert!(client.is_closed() && server.is_closed());
}

#[test]
fn its_line_in_the_log_comes_with_its_end() {
    let path = log::path("upgrade");
    let (upstream, agreed) = agreeing();
    let gateway = log::logging(&upstream, &path).start();
    let (mut client, mut server) = tunnel(&gateway, &agreed);
    client.send("12345");
    server.bytes(5).unwrap();
    server.send("123");
    client.bytes(3).unwrap();
    drop(client);
    let line = &log::lines(&path, 1)[0];
    assert_eq!((&line["status"], &line["outcome"]), (&101.into(), &"served".into()), "{line}");
    assert_eq!((&line["request_bytes"], &line["response_bytes"]), (&5.into(), &3.into()), "{line}");
    assert_ne!(server.head(), Err(Broken::Silent));
}

#[test]
fn words_of_another_protocol_that_was_not_granted_are_no_request() {
    let upstream = Upstream::app(|_| ok("no"));
    let gateway = Setup::before(&upstream).start();
    let behind = "GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n";
    let mut client = gateway.sends(format!("{ASKS}{behind}"));
    let answer = client.answer().unwrap();
    assert_eq!((answer.text().as_str(), answer.field("connection")), ("no", Some("close")));
    assert!(client.is_closed());
    assert!(!upstream.received().contains("smuggled"));
    // A client that waits for the response keeps its connection.
    let mut client = gateway.sends(ASKS);
    assert_eq!(client.answer().unwrap().field("connection"), None);
}
