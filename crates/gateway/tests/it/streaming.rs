//! Tests that large bodies are streamed and do not accumulate in the gateway.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::mpsc::channel;
use std::time::Duration;

use crate::setup::{Setup, get};
use crate::upstream::{Upstream, ok};
use crate::wire::{BOUND, Wire};

const LARGE: usize = 48 * 1024 * 1024;
/// A number of bytes that is more than the buffers of four sockets on loopback hold, and far less
/// than [`LARGE`].
const HELD: usize = 28 * 1024 * 1024;

/// Writes a pattern, whose first `from` bytes were already written, until `most` bytes are written
/// in total or the other side accepts no more. Returns the total.
fn pour(stream: &mut TcpStream, from: usize, most: usize) -> usize {
    let block: Vec<u8> = (0..=250).cycle().take(251 * 256).collect();
    let mut written = from;
    while written < most {
        let start = written % 251;
        let part = &block[start..block.len().min(start + most - written)];
        match stream.write(part) {
            Ok(count) => written += count,
            Err(error) if error.kind() == ErrorKind::WouldBlock => break,
            Err(error) => panic!("after {written} bytes: {error}"),
        }
    }
    written
}

/// Reads `count` bytes and checks that they are the pattern's bytes after the first `from`.
fn drink(stream: &mut impl Read, from: usize, count: usize) {
    let mut some = vec![0; 256 * 1024];
    let mut seen = from;
    while seen < from + count {
        let most = some.len().min(from + count - seen);
        let read = stream.read(&mut some[..most]).expect("bytes come");
        assert_ne!(read, 0, "it ended after {seen} bytes");
        let right = some[..read].iter().zip((0..=250).cycle().skip(seen % 251));
        assert!(right.into_iter().all(|(byte, expected)| *byte == expected), "after {seen}");
        seen += read;
    }
}

/// Sets a write timeout after which the other side counts as blocked.
fn impatient(stream: &TcpStream) {
    stream.set_write_timeout(Some(Duration::from_millis(300))).unwrap();
}

fn patient(stream: &TcpStream) {
    stream.set_write_timeout(Some(BOUND)).unwrap();
}

#[test]
fn a_large_upload_waits_for_an_upstream_that_does_not_read() {
    let (go, word) = channel::<()>();
    let word = std::sync::Mutex::new(word);
    let upstream = Upstream::script(move |mut wire| {
        assert_eq!(wire.head().unwrap().field("content-length"), Some(&*LARGE.to_string()));
        word.lock().unwrap().recv().unwrap();
        let begun = wire.buffered();
        drink(&mut begun.as_slice(), 0, begun.len());
        drink(&mut wire.stream, begun.len(), LARGE - begun.len());
        wire.send(ok("all of it"));
    });
    let gateway = Setup::before(&upstream).start();
    let request = format!("POST /up HTTP/1.1\r\nHost: a\r\nContent-Length: {LARGE}\r\n\r\n");
    let mut client = gateway.sends(request);
    impatient(&client.stream);
    let held = pour(&mut client.stream, 0, LARGE);
    assert!(held < HELD, "{held} bytes were taken that nobody has read");
    go.send(()).unwrap();
    patient(&client.stream);
    pour(&mut client.stream, held, LARGE);
    assert_eq!(client.answer().unwrap().text(), "all of it");
    gateway.is_idle_again();
}

#[test]
fn a_large_answer_waits_for_a_client_that_does_not_read() {
    let (sender, receiver) = channel();
    let upstream = Upstream::script(move |mut wire| {
        wire.request().unwrap();
        wire.send(format!("HTTP/1.1 200 OK\r\nContent-Length: {LARGE}\r\n\r\n"));
        impatient(&wire.stream);
        let held = pour(&mut wire.stream, 0, LARGE);
        sender.send(held).unwrap();
        patient(&wire.stream);
        pour(&mut wire.stream, held, LARGE);
    });
    let gateway = Setup::before(&upstream).start();
    let mut client = gateway.asks("/down");
    let held = receiver.recv_timeout(BOUND).unwrap();
    assert!(held < HELD, "{held} bytes were taken that nobody has read");
    assert_eq!(gateway.count("running"), 1);
    assert_eq!(client.head().unwrap().field("content-length"), Some(&*LARGE.to_string()));
    let begun = client.buffered();
    drink(&mut begun.as_slice(), 0, begun.len());
    drink(&mut client.stream, begun.len(), LARGE - begun.len());
    gateway.is_idle_again();
    client.send(get("/again"));
}

#[test]
fn a_large_chunked_answer_arrives_whole() {
    const CHUNKS: usize = 500;
    let upstream = Upstream::script(|mut wire| {
        wire.request().unwrap();
        wire.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
        for number in 0..CHUNKS {
            let chunk = vec![number as u8; 1 + number * 37 % 9000];
            wire.send([format!("{:x}\r\n", chunk.len()).as_bytes(), &chunk, b"\r\n"].concat());
        }
        wire.send("0\r\n\r\n");
    });
    let gateway = Setup::before(&upstream).start();
    let body = gateway.get("/").body;
    let right = (0..CHUNKS).flat_map(|n| std::iter::repeat_n(n as u8, 1 + n * 37 % 9000));
    assert!(body.into_iter().eq(right));
}

#[test]
fn a_large_chunked_upload_arrives_whole() {
    let upstream = Upstream::app(|request| ok(&request.body.len().to_string()));
    let gateway = Setup::before(&upstream).start();
    let mut client =
        gateway.sends("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
    let chunk = [b"2000\r\n".as_slice(), &[b'x'; 0x2000], b"\r\n"].concat();
    for _ in 0..256 {
        client.send(&chunk);
    }
    client.send("0\r\n\r\n");
    assert_eq!(client.answer().unwrap().text(), (256 * 0x2000).to_string());
}

#[test]
fn an_answer_is_passed_on_while_it_is_made() {
    let (upstream, calls) = Upstream::by_hand();
    let gateway = Setup::before(&upstream).start();
    let mut client = gateway.asks("/events");
    let mut call = calls.next();
    call.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
    assert_eq!(client.head().unwrap().status(), Some(200));
    for _ in 0..3 {
        call.send("5\r\nevent\r\n");
        assert_eq!(client.bytes(10).unwrap(), b"5\r\nevent\r\n");
    }
    call.send("0\r\n\r\n");
    assert_eq!(client.bytes(5).unwrap(), b"0\r\n\r\n");
}

#[test]
fn an_upload_is_passed_on_while_it_comes() {
    let (sender, parts) = channel();
    let upstream = Upstream::script(move |mut wire| {
        wire.head().unwrap();
        for _ in 0..3 {
            sender.send(wire.bytes(4).unwrap()).unwrap();
        }
        wire.send(ok(""));
    });
    let gateway = Setup::before(&upstream).start();
    let mut client: Wire =
        gateway.sends("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 12\r\n\r\n");
    for part in [b"some", b"more", b"last"] {
        client.send(part);
        assert_eq!(parts.recv_timeout(BOUND).unwrap(), part);
    }
    assert_eq!(client.answer().unwrap().status(), Some(200));
}

#[test]
fn a_long_upload_is_not_taken_for_a_slow_answer() {
    let upstream = Upstream::app(|request| ok(&request.text()));
    let gateway = Setup::before(&upstream).set("upstream.response_timeout", "'300ms'").start();
    let mut client = gateway.sends("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 8\r\n\r\n");
    for byte in b"8 pieces" {
        // This sleep makes the client slow. It is not for synchronisation.
        std::thread::sleep(Duration::from_millis(100));
        let _ = client.try_send([*byte]);
    }
    assert_eq!(client.answer().unwrap().text(), "8 pieces");
}

#[test]
fn an_upload_that_has_stopped_does_not_hold_the_only_slot() {
    let upstream = Upstream::app(|request| ok(&request.text()));
    let gateway = Setup::before(&upstream).limit(1).set("queue.slow_share", "0.01").start();
    let mut stalled = gateway.sends("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 30\r\n\r\nx");
    gateway.waits_for("running", 1);
    let mut next = gateway.asks("/next");
    let refusal = stalled.answer().unwrap();
    assert_eq!(refusal.status(), Some(503));
    assert!(refusal.field("proxy-status").unwrap().contains("bywash-reason=slow_client"));
    assert_eq!(next.answer().unwrap().status(), Some(200));
}

#[test]
fn a_waiting_body_in_pieces_of_a_byte_arrives_whole() {
    let (upstream, calls) = Upstream::by_hand();
    let gateway = Setup::before(&upstream).limit(1).start();
    let mut running = gateway.asks("/runs");
    let call = calls.next();
    let chunks = "1\r\nx\r\n".repeat(3000);
    let mut waiting = gateway.sends(format!(
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n{chunks}0\r\n\r\n"
    ));
    gateway.waits_for("waiting", 1);
    call.answer("");
    assert_eq!(running.answer().unwrap().status(), Some(200));
    let call = calls.next();
    assert_eq!(call.request.text(), "x".repeat(3000));
    call.answer("");
    assert_eq!(waiting.answer().unwrap().status(), Some(200));
}
