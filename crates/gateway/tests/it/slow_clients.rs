//! Tests that slow clients do not hold slots that others need, whatever their protocol, and that
//! honest slow clients are served.
//!
//! Sleeps in these tests make a client slow. They are not for synchronisation.

use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use h2::client::Builder;
use socket2::{Domain, Socket, Type};

use crate::http2::{Http2, request};
use crate::setup::{Running, Setup, eventually, get};
use crate::tls::{self, Certified};
use crate::upstream::{Upstream, with_fields};
use crate::wire::{Message, Wire};

/// Starts an application that responds with the length of the request's body, or with as many bytes
/// as the path says.
fn application() -> Upstream {
    Upstream::app(|request| match request.target().strip_prefix("/bytes/") {
        Some(bytes) => with_fields("", &"x".repeat(bytes.parse().unwrap())),
        None => with_fields("", &request.text().len().to_string()),
    })
}

fn enforcing(upstream: &Upstream, slots: u32) -> Setup {
    Setup::before(upstream).limit(slots)
}

fn is_served(gateway: &Running) {
    let answer = gateway.get("/");
    assert_eq!((answer.status(), answer.text().as_str()), (Some(200), "0"));
}

/// The beginning of a request that announces a very large body.
const ENDLESS: &str = "POST /up HTTP/1.1\r\nHost: a\r\nContent-Length: 900000000\r\n\r\nabc";

/// Connects a client with a small receive buffer.
fn narrow(address: SocketAddr) -> Wire {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    socket.connect(&address.into()).unwrap();
    Wire::new(TcpStream::from(socket))
}

/// Visitors, each of whom sends one request after the other until the value is dropped. If there
/// are fewer slots than visitors, at least one request always waits.
struct Visitors {
    over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Visitors {
    fn come_to(gateway: &Running, count: usize) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let address = gateway.gateway().http();
        let visit = |_| {
            let over = Arc::clone(&over);
            std::thread::spawn(move || {
                while !over.load(Ordering::Relaxed) {
                    let mut wire = Wire::connect(address);
                    wire.send(get("/"));
                    let _ = wire.answer();
                }
            })
        };
        let threads = (0..count).map(visit).collect();
        Self { over, threads }
    }
}

impl Drop for Visitors {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        self.threads.drain(..).for_each(|thread| thread.join().unwrap());
    }
}

#[test]
fn uploads_that_do_not_come_hold_no_slot() {
    let upstream = application();
    let gateway = enforcing(&upstream, 2).start();
    let _hostile: Vec<Wire> = (0..20).map(|_| gateway.sends(ENDLESS)).collect();
    is_served(&gateway);
    is_served(&gateway);
}

#[test]
fn uploads_that_stop_behind_the_buffer_give_their_slots_up_while_others_wait() {
    let upstream = application();
    let gateway = enforcing(&upstream, 4).set("queue.body_buffer", "'16B'").start();
    let fill = format!("{ENDLESS}{}", "x".repeat(1000));
    // Uploads hold two of the four slots.
    let mut hostile: Vec<Wire> = (0..3).map(|_| gateway.sends(&fill)).collect();
    eventually("one was stopped for the third", || gateway.outcome("terminated") == 1);
    gateway.waits_for("running", 2);
    is_served(&gateway);
    // The second client is likely to get the refusal: of equally slow clients the engine stops the
    // one that has run for the shortest time.
    let mut answers =
        [1, 0, 2].into_iter().filter_map(|number: usize| hostile[number].answer().ok());
    let is_refusal = |answer: &Message| answer.status() == Some(503);
    let refused = answers.find(is_refusal).expect("it is told");
    assert_eq!(refused.field("connection"), Some("close"));
    let reason = refused.field("proxy-status").unwrap();
    assert!(reason.contains("bywash-reason=slow_client"), "{reason}");
    assert!(refused.field("retry-after").is_some());
}

#[test]
fn clients_that_do_not_read_give_their_slots_up_while_others_wait() {
    let upstream = application();
    let gateway = enforcing(&upstream, 2).start();
    let mut hostile: Vec<Wire> = (0..2).map(|_| narrow(gateway.gateway().http())).collect();
    for wire in &mut hostile {
        wire.send(get("/bytes/8000000"));
    }
    gateway.waits_for("running", 2);
    is_served(&gateway);
    assert_eq!(gateway.outcome("terminated"), 1);
    assert_eq!(gateway.outcome("upstream_error"), 0, "the server is not to blame");
}

#[test]
fn one_http2_connection_with_many_open_uploads_stops_nobody() {
    let upstream = application();
    let gateway = enforcing(&upstream, 4).start();
    let mut hostile = Http2::connect(gateway.gateway().http());
    let mut uploads: Vec<_> =
        (0..20).map(|_| hostile.sends(request("POST", "/up", &[]), false)).collect();
    for _ in 0..20 {
        for upload in &mut uploads {
            upload.data(vec![b'x'; 60], false);
        }
        // This sleep makes the client slow.
        std::thread::sleep(Duration::from_millis(100));
    }
    is_served(&gateway);
    is_served(&gateway);
}

#[test]
fn small_answers_that_an_http2_client_has_no_window_for_hold_no_slot() {
    let upstream = application();
    let gateway = enforcing(&upstream, 4).start();
    let mut builder = Builder::new();
    builder.initial_window_size(0);
    let mut hostile = Http2::connect_with(gateway.gateway().http(), &builder);
    let _asked: Vec<_> = (0..60).map(|_| hostile.asks("/bytes/2000")).collect();
    gateway.is_idle_again();
    is_served(&gateway);
}

#[test]
fn large_answers_that_an_http2_client_has_no_window_for_give_their_slots_up() {
    let upstream = application();
    let gateway = enforcing(&upstream, 4).start();
    let mut builder = Builder::new();
    builder.initial_window_size(0);
    let mut hostile = Http2::connect_with(gateway.gateway().http(), &builder);
    let _asked: Vec<_> = (0..20).map(|_| hostile.asks("/bytes/8000000")).collect();
    gateway.waits_for("running", 4);
    is_served(&gateway);
}

#[test]
fn uploads_over_tls_that_do_not_come_hold_no_slot() {
    use std::io::Write;
    let certified = Certified::new("slow-clients", &["shop.example"]);
    let upstream = application();
    let gateway = tls::serving(&upstream, &[&certified]).limit(2).start();
    let client = tls::config(&[&certified], &[b"http/1.1"]);
    let hostile: Vec<_> = (0..10)
        .map(|_| {
            let mut tls = tls::connect(tls::https(&gateway), "shop.example", Arc::clone(&client));
            tls.write_all(ENDLESS.as_bytes()).unwrap();
            tls
        })
        .collect();
    is_served(&gateway);
    drop(hostile);
}

/// Slow clients are not restricted while a slot is free. When none is free, they may still use one
/// of the two slots.
#[test]
fn a_slow_upload_is_served_while_others_wait() {
    let upstream = application();
    let gateway = enforcing(&upstream, 2).start();
    let visitors = Visitors::come_to(&gateway, 6);
    let mut phone = gateway.sends("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2000000\r\n\r\n");
    for _ in 0..40 {
        phone.send(vec![b'x'; 50_000]);
        // This sleep makes the client slow: eight megabytes would take sixteen seconds.
        std::thread::sleep(Duration::from_millis(100));
    }
    let answer = phone.answer().unwrap();
    assert_eq!((answer.status(), answer.text().as_str()), (Some(200), "2000000"));
    drop(visitors);
}

#[test]
fn a_reader_at_twenty_kilobytes_a_second_is_served_while_others_wait() {
    let upstream = application();
    let gateway = enforcing(&upstream, 2).start();
    let visitors = Visitors::come_to(&gateway, 6);
    let mut reader = narrow(gateway.gateway().http());
    reader.send(get("/bytes/1000000"));
    reader.head().unwrap();
    for _ in 0..40 {
        reader.bytes(2000).unwrap();
        // This sleep makes the client slow.
        std::thread::sleep(Duration::from_millis(100));
    }
    assert_eq!(reader.bytes(920_000).unwrap().len(), 920_000);
    drop(visitors);
}

#[test]
fn an_office_of_five_hundred_behind_one_address_is_served() {
    let upstream = application();
    let gateway = enforcing(&upstream, 4).set("scheduler.capacity", "1000").start();
    let mut office: Vec<Wire> = (0..500).map(|_| gateway.asks("/")).collect();
    let served = office.iter_mut().map(|wire| wire.answer().unwrap().status());
    assert_eq!(served.filter(|status| *status == Some(200)).count(), 500);
}

/// The client sends its body only after the application has begun to respond. The request gets a
/// free slot nevertheless.
#[test]
fn a_body_that_waits_for_the_application_runs_while_a_slot_is_free() {
    let upstream = Upstream::script(|mut wire| {
        wire.head().unwrap();
        wire.send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n");
        let received = wire.bytes(4).unwrap();
        wire.send(received);
    });
    let gateway = enforcing(&upstream, 1).start();
    let mut client = gateway.sends("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\n");
    assert_eq!(client.head().unwrap().status(), Some(200));
    client.send("ping");
    assert_eq!(client.bytes(4).unwrap(), b"ping");
}

#[test]
fn what_is_only_observed_runs_at_once_and_is_not_stopped() {
    let (upstream, calls) = Upstream::by_hand();
    let gateway = enforcing(&upstream, 1).set("mode", "'observe'").start();
    let mut slow = gateway.sends("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\n");
    let _others: Vec<Wire> = (0..3).map(|_| gateway.asks("/")).collect();
    let waiting: Vec<_> = (0..3).map(|_| calls.next()).collect();
    slow.send("abc");
    calls.next().answer("read");
    assert_eq!(slow.answer().unwrap().text(), "read");
    drop(waiting);
    assert_eq!(gateway.outcome("terminated"), 0);
}

#[test]
fn a_body_is_no_larger_than_its_class_lets_it_be() {
    let upstream = application();
    let gateway = enforcing(&upstream, 2)
        .set("client_limits.max_body_bytes", "'1KiB'")
        .set("class.upload.match", "['POST /upload']")
        .set("class.upload.max_body_bytes", "'4KiB'")
        .start();
    let post = |path: &str, length: usize| {
        let head = format!("POST {path} HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n");
        let mut client = gateway.sends(head + &"x".repeat(length));
        client.answer().unwrap().status()
    };
    assert_eq!([post("/", 1024), post("/", 1025)], [Some(200), Some(413)]);
    assert_eq!([post("/upload", 4096), post("/upload", 4097)], [Some(200), Some(413)]);
    let chunk = format!("{:x}\r\n{}\r\n", 600, "x".repeat(600));
    let chunked = |chunks: usize| {
        let head = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
        let mut client = gateway.sends(format!("{head}{}0\r\n\r\n", chunk.repeat(chunks)));
        client.answer().unwrap().status()
    };
    assert_eq!([chunked(1), chunked(2)], [Some(200), Some(413)]);
}

/// The client was slow at the beginning. Then its body arrived, so from now on only the application
/// takes long.
#[test]
fn a_client_that_has_sent_its_body_is_slow_no_longer() {
    let (upstream, calls) = Upstream::by_hand();
    let gateway = enforcing(&upstream, 2).start();
    let asks = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n";
    let mut clients: Vec<Wire> = (0..2).map(|_| gateway.sends(asks)).collect();
    for client in &mut clients {
        assert_eq!(client.head().unwrap().status(), Some(100));
        client.send("abc");
    }
    let running = [calls.next(), calls.next()];
    let mut visitor = gateway.asks("/");
    gateway.waits_for("waiting", 1);
    assert_eq!(gateway.outcome("terminated"), 0, "none is stopped for the visitor");
    for call in running {
        call.answer("read");
    }
    calls.next().answer("visited");
    assert_eq!(visitor.answer().unwrap().text(), "visited");
    for client in &mut clients {
        assert_eq!(client.answer().unwrap().text(), "read");
    }
}

#[test]
fn a_request_whose_body_is_still_read_is_counted_among_uploads_and_not_as_waiting() {
    let (upstream, calls) = Upstream::by_hand();
    let gateway = enforcing(&upstream, 1).start();
    let _first = gateway.sends(get("/"));
    let call = calls.next();
    let mut upload = gateway.sends("POST /up HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\n\r\nabc");
    gateway.waits_for("uploads", 1);
    assert_eq!(gateway.metric("bywash_uploads"), 1.0);
    assert_eq!(gateway.count("waiting"), 0);
    upload.send("def");
    gateway.waits_for("waiting", 1);
    assert_eq!(gateway.count("uploads"), 0);
    call.answer("");
    calls.next().answer("");
    assert_eq!(upload.answer().unwrap().status(), Some(200));
}
