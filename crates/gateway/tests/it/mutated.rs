//! Tests of messages with random damage, from clients and from the upstream. No worker panics,
//! every slot is given back, and the next request is served, whatever the messages cause.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Once};
use std::time::Duration;

use crate::setup::{Setup, get, post};
use crate::soak::Chance;
use crate::upstream::{Upstream, ok};
use crate::wire::{Broken, Message};

static PANICS: AtomicUsize = AtomicUsize::new(0);

/// Counts panics of the gateway's own threads. Tokio catches them, so they would go unnoticed
/// otherwise.
fn watch_for_panics() {
    static WATCH: Once = Once::new();
    WATCH.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if std::thread::current().name().is_some_and(|name| name.starts_with("worker-")) {
                PANICS.fetch_add(1, Ordering::SeqCst);
            }
            before(panic);
        }));
    });
}

/// Returns the number of rounds, which the environment variable `ROUNDS` sets.
fn rounds() -> usize {
    std::env::var("ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(300)
}

/// The bytes that are inserted into messages to damage them.
const PIECES: [&[u8]; 20] = [
    b"\r\n",
    b"\n",
    b"\r",
    b"\0",
    b" ",
    b":",
    b",",
    b"\xff",
    b"0",
    b"99999999999999999999",
    b"-1",
    b"\r\n\r\n",
    b"Content-Length: 3\r\n",
    b"Transfer-Encoding: chunked\r\n",
    b"Transfer-Encoding: gzip\r\n",
    b"Connection: close, content-length\r\n",
    b"Host: b\r\n",
    b"Expect: 100-continue\r\n",
    b"HTTP/1.0",
    b"5\r\nhello\r\n0\r\n\r\n",
];

fn damage(message: &[u8], chance: &mut Chance) -> Vec<u8> {
    let mut bytes = message.to_vec();
    for _ in 0..=chance.below(3) {
        let at = chance.below(bytes.len() as u64 + 1) as usize;
        let until = (at + chance.below(12) as usize).min(bytes.len());
        let piece = PIECES[chance.below(PIECES.len() as u64) as usize];
        match chance.below(4) {
            0 => drop(bytes.splice(at..until, piece.iter().copied())),
            1 => drop(bytes.drain(at..until)),
            2 => drop(bytes.splice(at..at, piece.iter().copied())),
            _ => {
                // Inserts a whole field where the fields begin.
                let line = bytes.windows(2).position(|two| two == b"\r\n").map_or(0, |end| end + 2);
                drop(bytes.splice(line..line, piece.iter().copied()));
            }
        }
    }
    bytes
}

/// Returns a description of what is wrong with a request that has reached the upstream. Returns
/// `None` if nothing is wrong.
fn fault_of(request: &Message) -> Option<String> {
    let count = |name: &str| request.all(name).len();
    let framed = count("content-length") + count("transfer-encoding");
    let wrong = count("host") != 1
        || framed > 1
        || count("connection") + count("te") + count("upgrade") + count("expect") > 0
        || count("bywash-request") != 1
        || !request.start.ends_with(" HTTP/1.1")
        || !(request.target().starts_with('/') || request.target() == "*");
    wrong.then(|| format!("{request:?}"))
}

#[test]
fn damaged_requests_break_nothing() {
    watch_for_panics();
    let faults = Arc::new(Mutex::new(Vec::new()));
    let found = Arc::clone(&faults);
    let upstream = Upstream::script(move |mut wire| {
        let note = |fault: String| found.lock().unwrap().push(fault);
        loop {
            match wire.request() {
                Ok(request) => {
                    fault_of(&request).into_iter().for_each(note);
                    let _ = wire.try_send(ok(request.target()));
                }
                Err(Broken::Garbage) => return note("garbage".into()),
                Err(Broken::Closed | Broken::Cut | Broken::Silent) => return,
            }
        }
    });
    let gateway = Setup::before(&upstream)
        .limit(2)
        .set("class.page", "{ match = ['GET /p/**'], tier = 'transaction' }")
        .start();
    let chunked = "POST /c HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n\
                   3;x=y\r\nabc\r\n0\r\nX: y\r\n\r\n";
    let seeds = [
        get("/p/1?x=%20y"),
        post("/form", "name=value"),
        chunked.to_owned(),
        "GET http://a/x HTTP/1.1\r\nHost: a\r\nCookie: sid=1\r\nConnection: x, close\r\n\r\n"
            .into(),
        "OPTIONS * HTTP/1.0\r\nX-Forwarded-For: 1, 2\r\nVia: 1.1 x\r\n\r\n".into(),
    ];
    let mut chance = Chance(1);
    for round in 0..rounds() {
        let seed = seeds[round % seeds.len()].as_bytes();
        let mut client = gateway.client();
        client.stream.set_read_timeout(Some(Duration::from_millis(3))).unwrap();
        let _ = client.try_send(damage(seed, &mut chance));
        let _ = client.answer();
    }
    gateway.is_idle_again();
    gateway.waits_for("connections", 0);
    assert_eq!(gateway.get("/fine").text(), "/fine");
    assert_eq!(*faults.lock().unwrap(), [""; 0]);
    assert_eq!(PANICS.load(Ordering::SeqCst), 0);
}

#[test]
fn damaged_answers_break_nothing() {
    watch_for_panics();
    let seeds = [
        ok("hello"),
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n".to_vec(),
        b"HTTP/1.0 200 OK\r\nSet-Cookie: sid=1\r\n\r\nhello".to_vec(),
        b"HTTP/1.1 304 Not Modified\r\nETag: x\r\n\r\n".to_vec(),
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n".to_vec(),
    ];
    let round = AtomicUsize::new(0);
    let upstream = Upstream::script(move |mut wire| {
        if let Ok(request) = wire.request() {
            let round = round.fetch_add(1, Ordering::SeqCst);
            let seed = &seeds[round % seeds.len()];
            let fine = request.target() == "/fine";
            let bytes = if fine { ok("fine") } else { damage(seed, &mut Chance(round as u64)) };
            let _ = wire.try_send(bytes);
        }
    });
    let gateway = Setup::before(&upstream).limit(2).start();
    for round in 0..rounds() {
        let request = if round % 7 == 0 { get("/").replace("GET", "HEAD") } else { get("/") };
        let mut client = gateway.sends(request);
        let _ = if round % 7 == 0 { client.answer_to_head() } else { client.answer() };
    }
    gateway.is_idle_again();
    gateway.waits_for("connections", 0);
    assert_eq!(gateway.get("/fine").text(), "fine");
    assert_eq!(PANICS.load(Ordering::SeqCst), 0);
}
