//! A closed-loop load generator: one epoll thread with keep-alive connections, plain-text or TLS.
//! Each connection has one request in flight, and the status of every response is checked.

use super::CONNECTIONS;
use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};

use bywash_harness::http::{self, IncomingAnswer};
use bywash_harness::sys::Epoll;
use bywash_harness::tls::{self, MaybeTlsStream};

/// Interval in milliseconds at which the thread checks whether to stop.
const LOOK: i32 = 100;

/// Counts of responses since the start of the load generator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counts {
    /// Number of responses with the expected status.
    pub expected: u64,
    /// Number of responses with another status, and of requests whose connection ended without a
    /// response.
    pub unexpected: u64,
    /// Number of connections opened again because the proxy had closed them after a response.
    pub reopened: u64,
}

#[derive(Debug, Default)]
struct Counters {
    expected: AtomicU64,
    unexpected: AtomicU64,
    reopened: AtomicU64,
}

/// A running closed-loop load generator.
#[derive(Debug)]
pub struct Load {
    counters: Arc<Counters>,
    stop: Arc<AtomicBool>,
    thread: JoinHandle<io::Result<()>>,
}

impl Load {
    /// Starts a plain-text load generator against `port`, on the caller's core. Responses are
    /// expected to have `status`.
    pub fn start(port: u16, status: &'static str) -> Self {
        Self::start_at(Target { port, tls: None }, status)
    }

    /// Starts a TLS load generator against `port`, on the caller's core. Responses are expected to
    /// have `status`.
    pub fn start_tls(port: u16, status: &'static str, tls: tls::Client) -> Self {
        Self::start_at(Target { port, tls: Some(tls) }, status)
    }

    fn start_at(target: Target, status: &'static str) -> Self {
        let (counters, stop) = (Arc::<Counters>::default(), Arc::new(AtomicBool::new(false)));
        let (count, told) = (Arc::clone(&counters), Arc::clone(&stop));
        let thread = thread::spawn(move || drive(&target, status, &count, &told));
        Self { counters, stop, thread }
    }

    /// Returns the counts since the start.
    pub fn counts(&self) -> Counts {
        let Counters { expected, unexpected, reopened } = &*self.counters;
        let [expected, unexpected, reopened] =
            [expected, unexpected, reopened].map(|counter| counter.load(Ordering::Relaxed));
        Counts { expected, unexpected, reopened }
    }

    /// Stops the load generator and returns its counts. Fails if the load generator had already
    /// ended with an error, and returns that error.
    pub fn stop(self) -> io::Result<Counts> {
        let counts = self.counts();
        self.stop.store(true, Ordering::Relaxed);
        let ended = self.thread.join().map_err(|_| io::Error::other("the load panicked"))?;
        ended.map(|()| counts)
    }
}

/// The server to which the load generator sends its requests, and the status that it expects.
#[derive(Debug)]
struct Target {
    port: u16,
    tls: Option<tls::Client>,
}

impl Target {
    fn connect(&self) -> io::Result<MaybeTlsStream> {
        let stream = TcpStream::connect(("127.0.0.1", self.port))?;
        stream.set_nodelay(true)?;
        let wire = match &self.tls {
            Some(tls) => MaybeTlsStream::Tls(Box::new(tls.connect(stream)?)),
            None => MaybeTlsStream::Clear(stream),
        };
        wire.socket().set_nonblocking(true)?;
        Ok(wire)
    }
}

fn drive(target: &Target, status: &str, counters: &Counters, stop: &AtomicBool) -> io::Result<()> {
    let (mut epoll, mut ready) = (Epoll::new(CONNECTIONS)?, Vec::new());
    let mut clients = Vec::with_capacity(CONNECTIONS);
    for token in 0..CONNECTIONS {
        clients.push(Client::open(target, token, &epoll)?);
    }
    let mut room = vec![0; 16384];
    while !stop.load(Ordering::Relaxed) {
        epoll.wait(LOOK, &mut ready)?;
        for &token in &ready {
            match clients[token].on_ready(&mut room)? {
                ReadyOutcome::Waiting => {}
                ReadyOutcome::Answered(got) if got == status.as_bytes() => {
                    count(&counters.expected);
                }
                ReadyOutcome::Answered(_) => count(&counters.unexpected),
                ReadyOutcome::Ended { in_request } => {
                    count(if in_request { &counters.unexpected } else { &counters.reopened });
                    clients[token] = Client::open(target, token, &epoll)?;
                }
            }
        }
    }
    Ok(())
}

fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

/// The result of handling a connection that has become readable.
#[derive(Debug, PartialEq, Eq)]
enum ReadyOutcome {
    /// The response is not complete.
    Waiting,
    /// A response with this status. The next request, if the connection allows one, has been sent.
    Answered([u8; 3]),
    /// The connection has ended, or its bytes are not HTTP. `in_request` tells whether a request
    /// was in flight. No request is sent after a response that announces the close.
    Ended { in_request: bool },
}

#[derive(Debug)]
struct Client {
    wire: MaybeTlsStream,
    /// The bytes of the current response that have arrived.
    unread: Vec<u8>,
    /// The parser of the current response. It is not used if the response has the same [`Shape`] as
    /// the previous one.
    answer: IncomingAnswer,
    last: Shape,
}

/// The lengths of a response's head and of the whole response, and whether it closes the
/// connection.
///
/// Almost every response has the same lengths as the previous one, and such a response is not
/// parsed. Otherwise the load generator's own CPU time would be the bottleneck.
#[derive(Debug, Clone, Copy, Default)]
struct Shape {
    head: usize,
    total: usize,
    /// Whether the response had `Connection: close`.
    closing: bool,
}

impl Shape {
    fn fits(&self, bytes: &[u8]) -> bool {
        self.total > 0 && bytes.len() == self.total && bytes[..self.head].ends_with(b"\r\n\r\n")
    }

    /// Returns the shape of the complete response in `bytes`.
    fn of(bytes: &[u8], closing: bool) -> Self {
        let head = http::head_length(bytes).unwrap_or(0);
        Self { head, total: bytes.len(), closing }
    }
}

impl Client {
    fn open(target: &Target, token: usize, epoll: &Epoll) -> io::Result<Self> {
        let wire = target.connect()?;
        epoll.add(wire.socket(), token)?;
        let (unread, answer) = (Vec::with_capacity(1024), IncomingAnswer::default());
        let mut client = Self { wire, unread, answer, last: Shape::default() };
        client.ask()?;
        Ok(client)
    }

    fn ask(&mut self) -> io::Result<()> {
        self.wire.write_all(REQUEST)
    }

    fn on_ready(&mut self, room: &mut [u8]) -> io::Result<ReadyOutcome> {
        let ended = ReadyOutcome::Ended { in_request: !self.last.closing };
        let count = match self.wire.read(room) {
            Ok(count) => count,
            Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(ReadyOutcome::Waiting),
            Err(e) if e.kind() == ErrorKind::ConnectionReset => return Ok(ended),
            Err(e) => return Err(e),
        };
        self.unread.extend_from_slice(&room[..count]);
        if !self.last.fits(&self.unread) {
            // A read of zero bytes means that the connection has ended. That also ends a response
            // without a length.
            match self.answer.feed(&room[..count]) {
                Ok(Some(head)) => self.last = Shape::of(&self.unread, !head.keep_alive),
                Ok(None) if count > 0 => return Ok(ReadyOutcome::Waiting),
                Ok(None) | Err(_) => return Ok(ended),
            }
        }
        let status = status(&self.unread);
        // One request is in flight, so nothing can follow its response.
        self.unread.clear();
        self.answer = IncomingAnswer::default();
        if !self.last.closing {
            self.ask()?;
        }
        Ok(ReadyOutcome::Answered(status))
    }
}

/// Returns the three digits of the status, which follow `HTTP/1.1 `.
fn status(answer: &[u8]) -> [u8; 3] {
    answer.get(9..12).and_then(|digits| digits.try_into().ok()).unwrap_or_default()
}

const REQUEST: &[u8] = b"GET /item HTTP/1.1\r\nHost: bench.test\r\n\r\n";

#[cfg(test)]
mod tests {
    use super::*;
    use bywash_harness::upstream::Upstream;
    use std::net::TcpListener;
    use std::time::{Duration, Instant};

    #[test]
    fn the_load_counts_the_upstreams_answers_by_whether_they_were_expected() {
        let upstream = Upstream::start().unwrap();
        for (status, right) in [("200", true), ("503", false)] {
            let load = Load::start(upstream.port(), status);
            let start = Instant::now();
            let all = |counts: Counts| counts.expected + counts.unexpected;
            while all(load.counts()) < 1000 && start.elapsed() < Duration::from_secs(5) {
                thread::yield_now();
            }
            let counts = load.stop().unwrap();
            assert!(all(counts) >= 1000, "{counts:?}");
            assert_eq!((counts.expected > 0, counts.unexpected > 0), (right, !right), "{counts:?}");
        }
    }

    #[test]
    fn an_answer_that_ends_with_its_connection_is_counted() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                if stream.read(&mut [0; 1024]).is_ok_and(|count| count > 0) {
                    // A load generator that has stopped reads no answer, so an error is expected.
                    let _ = stream.write_all(b"HTTP/1.1 503 x\r\nConnection: close\r\n\r\nbusy");
                }
            }
        });
        let (load, start) = (Load::start(port, "503"), Instant::now());
        while load.counts().reopened < 100 && start.elapsed() < Duration::from_secs(5) {
            thread::yield_now();
        }
        let counts = load.stop().unwrap();
        assert!(counts.expected > 0 && counts.reopened >= 100, "{counts:?}");
        assert_eq!(counts.unexpected, 0, "{counts:?}");
    }

    #[test]
    fn an_answer_of_another_length_is_parsed_again() {
        let shape = Shape::of(http::ok("12345").as_bytes(), false);
        assert!(shape.fits(http::ok("54321").as_bytes()));
        assert!(!shape.fits(http::ok("1234").as_bytes()));
        assert!(!shape.fits(&http::ok("12345").as_bytes()[1..]));
        assert!(!Shape::default().fits(b""));
    }
}
