//! Tests of servers that send HTTP/2 frame by frame. Libraries do not send some of these frames at
//! all, and others not at that time.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::http2::{
    DATA, END_HEADERS, END_STREAM, Frames, GOAWAY, HEADERS, RST_STREAM, SETTINGS, WINDOW_UPDATE,
};
use crate::setup::{Running, Setup, eventually, get, post};
use crate::wire::BOUND;

const REFUSED_STREAM: [u8; 4] = [0, 0, 0, 7];

/// The HPACK encoding of `:status: 200`, from the static table.
const OK: &[u8] = &[0x88];

/// A server that runs a script on each connection. Connections are numbered from 1.
struct Server {
    address: SocketAddr,
    accepted: Arc<AtomicUsize>,
}

impl Server {
    fn new(script: impl Fn(usize, Frames) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let this = Self { address, accepted: Arc::default() };
        let (accepted, script) = (Arc::clone(&this.accepted), Arc::new(script));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(mut stream) = stream else { return };
                let number = accepted.fetch_add(1, Ordering::SeqCst) + 1;
                let script = Arc::clone(&script);
                std::thread::spawn(move || {
                    stream.set_read_timeout(Some(BOUND)).unwrap();
                    if stream.read_exact(&mut [0; 24]).is_ok() {
                        script(number, Frames(stream));
                    }
                });
            }
        });
        this
    }

    fn gateway(&self) -> Setup {
        Setup::before_address(self.address).servers(&[format!("h2c://{}", self.address)])
    }

    fn accepted(&self) -> usize {
        self.accepted.load(Ordering::SeqCst)
    }
}

/// Sends a frame to the gateway. Ignores an error, because the gateway may have closed the
/// connection.
fn say(frames: &mut Frames, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
    let _ = frames.0.write_all(&crate::http2::frame(kind, flags, stream, payload));
}

fn answer(frames: &mut Frames, stream: u32) {
    say(frames, HEADERS, END_HEADERS, stream, OK);
    say(frames, DATA, END_STREAM, stream, b"fine");
}

/// Answers every request.
fn serve(mut frames: Frames) {
    say(&mut frames, SETTINGS, 0, 0, b"");
    while let Some(frame) = frames.next() {
        if frame.kind == HEADERS {
            answer(&mut frames, frame.stream);
        }
    }
}

fn failures(gateway: &Running) -> u64 {
    gateway.is_idle_again();
    let server = &gateway.status()["servers"][0];
    server["response_failures"].as_u64().unwrap() + server["connect_failures"].as_u64().unwrap()
}

/// Returns the stream of the first request on a connection.
fn first(frames: &mut Frames) -> u32 {
    loop {
        match frames.next() {
            Some(frame) if frame.kind == HEADERS => return frame.stream,
            Some(_) => {}
            None => return 0,
        }
    }
}

#[test]
fn clients_that_do_not_read_cannot_fill_the_window_of_all() {
    let (sender, receiver) = std::sync::mpsc::channel();
    let server = Server::new(move |_, mut frames| {
        // The server sends its settings, and then opens the window of the connection.
        let mut window = 65_535;
        for _ in 0..2 {
            let mut head = [0; 9];
            frames.0.read_exact(&mut head).unwrap();
            let mut payload = vec![0; usize::from(u16::from_be_bytes([head[1], head[2]]))];
            frames.0.read_exact(&mut payload).unwrap();
            if head[3] == WINDOW_UPDATE {
                window += u32::from_be_bytes(payload.try_into().unwrap());
            }
        }
        sender.send(window).unwrap();
        serve(frames);
    });
    let gateway = server.gateway().start();
    assert_eq!(gateway.get("/").text(), "fine");
    assert_eq!(receiver.recv_timeout(BOUND).unwrap(), (1 << 31) - 1);
}

#[test]
fn until_the_server_has_said_how_many_streams_it_takes_a_connection_carries_one() {
    let requests = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&requests);
    let server = Server::new(move |_, mut frames| {
        // The server sends nothing at all.
        while first(&mut frames) != 0 {
            counter.fetch_add(1, Ordering::SeqCst);
        }
    });
    let gateway = server.gateway().start();
    let mut clients = Vec::new();
    for number in 1..=3 {
        clients.push(gateway.asks("/"));
        eventually("the request is there", || requests.load(Ordering::SeqCst) == number);
        assert_eq!(server.accepted(), number);
    }
}

#[test]
fn a_refused_stream_is_sent_again_and_is_no_failure() {
    let refusals = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&refusals);
    let server = Server::new(move |_, mut frames| {
        say(&mut frames, SETTINGS, 0, 0, b"");
        while let Some(frame) = frames.next() {
            if frame.kind != HEADERS {
                continue;
            }
            if frame.stream == 1 {
                counter.fetch_add(1, Ordering::SeqCst);
                say(&mut frames, RST_STREAM, 0, 1, &REFUSED_STREAM);
            } else {
                answer(&mut frames, frame.stream);
            }
        }
    });
    for (request, status) in [(get("/"), 200), (post("/", ""), 200), (post("/", "body"), 502)] {
        let gateway = server.gateway().start();
        assert_eq!(gateway.sends(&request).answer().unwrap().status(), Some(status), "{request}");
        assert_eq!(failures(&gateway), 0, "{request}");
    }
    assert_eq!(refusals.load(Ordering::SeqCst), 3);
}

#[test]
fn a_server_that_refuses_everything_is_asked_three_times() {
    let asked = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&asked);
    let server = Server::new(move |_, mut frames| {
        say(&mut frames, SETTINGS, 0, 0, b"");
        while let Some(frame) = frames.next() {
            if frame.kind == HEADERS {
                counter.fetch_add(1, Ordering::SeqCst);
                say(&mut frames, RST_STREAM, 0, frame.stream, &REFUSED_STREAM);
            }
        }
    });
    let gateway = server.gateway().start();
    assert_eq!(gateway.get("/").status(), Some(502));
    assert_eq!((asked.load(Ordering::SeqCst), failures(&gateway)), (3, 0));
}

#[test]
fn a_stream_above_the_last_that_goodbye_names_is_sent_again_and_is_no_failure() {
    for request in [get("/"), post("/", "")] {
        let server = Server::new(|number, mut frames| {
            if number > 1 {
                return serve(frames);
            }
            say(&mut frames, SETTINGS, 0, 0, b"");
            first(&mut frames);
            say(&mut frames, GOAWAY, 0, 0, &[0; 8]);
            while frames.next().is_some() {}
        });
        let gateway = server.gateway().start();
        assert_eq!(gateway.sends(&request).answer().unwrap().text(), "fine");
        assert_eq!((server.accepted(), failures(&gateway)), (2, 0));
    }
}

/// The server may have processed a stream up to the last one that its GOAWAY names.
#[test]
fn a_stream_that_goodbye_names_is_not_sent_again() {
    let server = Server::new(|_, mut frames| {
        say(&mut frames, SETTINGS, 0, 0, b"");
        let stream = first(&mut frames);
        say(&mut frames, GOAWAY, 0, 0, &[stream.to_be_bytes(), [0; 4]].concat());
    });
    let gateway = server.gateway().start();
    assert_eq!(gateway.sends(post("/", "")).answer().unwrap().status(), Some(502));
    assert_eq!((server.accepted(), failures(&gateway)), (1, 1));
}

/// The server's frames for reset streams arrive more than a second late, when the `h2` crate has
/// already forgotten the streams.
#[test]
fn late_answers_to_any_number_of_departures_do_not_end_the_connection() {
    const DEPARTURES: usize = 1_150;
    let reset = Arc::new(AtomicUsize::new(0));
    let seen = Arc::new(AtomicUsize::new(0));
    let (counts, heads) = (Arc::clone(&reset), Arc::clone(&seen));
    let server = Server::new(move |_, mut frames| {
        say(&mut frames, SETTINGS, 0, 0, b"");
        let mut gone = BTreeSet::new();
        while let Some(frame) = frames.next() {
            if frame.kind == RST_STREAM && gone.insert(frame.stream) {
                counts.fetch_add(1, Ordering::SeqCst);
            } else if frame.kind == HEADERS && frame.stream == 1 {
                answer(&mut frames, 1);
            } else if frame.kind == HEADERS && heads.fetch_add(1, Ordering::SeqCst) >= DEPARTURES {
                for stream in std::mem::take(&mut gone) {
                    answer(&mut frames, stream);
                }
                answer(&mut frames, frame.stream);
            }
        }
    });
    let gateway = server.gateway().limit(50).start();
    // From now on there is one connection that takes all requests.
    assert_eq!(gateway.get("/").text(), "fine");
    for round in 1..=DEPARTURES / 50 {
        let clients: Vec<_> = (0..50).map(|_| gateway.asks("/")).collect();
        eventually("all are there", || seen.load(Ordering::SeqCst) == round * 50);
        drop(clients);
        eventually("all are reset", || reset.load(Ordering::SeqCst) == round * 50);
    }
    // The sleep is longer than the `h2` crate remembers a reset stream.
    std::thread::sleep(Duration::from_millis(1_200));
    for _ in 0..3 {
        assert_eq!(gateway.get("/").text(), "fine");
    }
    assert_eq!((server.accepted(), failures(&gateway)), (1, 0));
}

#[test]
fn a_connection_that_has_died_is_noticed_though_every_client_leaves_early() {
    let server = Server::new(|number, mut frames| {
        if number > 1 {
            return serve(frames);
        }
        say(&mut frames, SETTINGS, 0, 0, b"");
        // The server reads everything and answers nothing, not even a PING.
        let _ = std::io::copy(&mut frames.0, &mut std::io::sink());
    });
    let gateway = server.gateway().start();
    eventually("one is served", || {
        let mut client = gateway.asks("/");
        client.stream.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
        client.answer().is_ok_and(|answer| answer.text() == "fine")
    });
    assert_eq!((server.accepted(), failures(&gateway)), (2, 0));
}
