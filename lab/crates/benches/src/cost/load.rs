//! The load: one epoll thread, a closed loop of keep-alive connections in clear or by TLS, one
//! request under way on each, every answer's status checked.

use super::CONNECTIONS;
use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};

use bywash_harness::http::{self, Head, message_length};
use bywash_harness::sys::Epoll;
use bywash_harness::tls::{self, MaybeTlsStream};

/// How often the thread looks whether it is to end.
const LOOK: i32 = 100;

/// What has come back so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counts {
    /// Answers with the status that was expected.
    pub expected: u64,
    /// Answers with another status, and requests whose connection ended without one.
    pub unexpected: u64,
    /// Connections opened again because the proxy had closed them after an answer.
    pub reopened: u64,
}

#[derive(Debug, Default)]
struct Counters {
    expected: AtomicU64,
    unexpected: AtomicU64,
    reopened: AtomicU64,
}

/// A running load.
#[derive(Debug)]
pub struct Load {
    counters: Arc<Counters>,
    stop: Arc<AtomicBool>,
    thread: JoinHandle<io::Result<()>>,
}

impl Load {
    /// Starts it in clear against `port`, on the caller's core.
    pub fn start(port: u16, status: &'static str) -> Self {
        Self::start_at(Target { port, tls: None }, status)
    }

    /// Starts it by TLS.
    pub fn start_tls(port: u16, status: &'static str, tls: tls::Client) -> Self {
        Self::start_at(Target { port, tls: Some(tls) }, status)
    }

    fn start_at(target: Target, status: &'static str) -> Self {
        let (counters, stop) = (Arc::<Counters>::default(), Arc::new(AtomicBool::new(false)));
        let (count, told) = (Arc::clone(&counters), Arc::clone(&stop));
        let thread = thread::spawn(move || drive(&target, status, &count, &told));
        Self { counters, stop, thread }
    }

    /// The counts at this moment.
    pub fn counts(&self) -> Counts {
        let Counters { expected, unexpected, reopened } = &*self.counters;
        let [expected, unexpected, reopened] =
            [expected, unexpected, reopened].map(|counter| counter.load(Ordering::Relaxed));
        Counts { expected, unexpected, reopened }
    }

    /// Ends it; the error that ended it before, if one did.
    pub fn stop(self) -> io::Result<Counts> {
        let counts = self.counts();
        self.stop.store(true, Ordering::Relaxed);
        let ended = self.thread.join().map_err(|_| io::Error::other("the load panicked"))?;
        ended.map(|()| counts)
    }
}

/// Where to, and how.
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

/// What one readiness of a connection came to.
#[derive(Debug, PartialEq, Eq)]
enum ReadyOutcome {
    /// The answer is not complete.
    Waiting,
    /// An answer with this status; the next request, if there can be one, is on its way.
    Answered([u8; 3]),
    /// The connection has ended: with its request unanswered, unless the answer before had
    /// announced it.
    Ended { in_request: bool },
}

#[derive(Debug)]
struct Client {
    wire: MaybeTlsStream,
    unread: Vec<u8>,
    last: Shape,
}

/// What one answer was like. The next one is almost always the same in all three, and a head of
/// the same length with a body of the same length need not be parsed again: the load must not
/// become the limit by its own user time.
#[derive(Debug, Clone, Copy, Default)]
struct Shape {
    head: usize,
    total: usize,
    /// It said `Connection: close`.
    closing: bool,
}

impl Shape {
    fn fits(&self, bytes: &[u8]) -> bool {
        self.total > 0 && bytes.len() == self.total && bytes[..self.head].ends_with(b"\r\n\r\n")
    }

    /// The shape of the answer in `bytes`; `None` until it is complete.
    fn of(bytes: &[u8]) -> Option<Self> {
        let head = Head::parse(bytes)?;
        let total = message_length(&head, bytes)?;
        let closing = http::says_close(&bytes[..head.length]);
        Some(Self { head: head.length, total, closing })
    }
}

impl Client {
    fn open(target: &Target, token: usize, epoll: &Epoll) -> io::Result<Self> {
        let wire = target.connect()?;
        epoll.add(wire.socket(), token)?;
        let mut client = Self { wire, unread: Vec::with_capacity(1024), last: Shape::default() };
        client.ask()?;
        Ok(client)
    }

    fn ask(&mut self) -> io::Result<()> {
        self.wire.write_all(REQUEST)
    }

    fn on_ready(&mut self, room: &mut [u8]) -> io::Result<ReadyOutcome> {
        match self.wire.read(room) {
            Ok(0) => return Ok(ReadyOutcome::Ended { in_request: !self.last.closing }),
            Ok(count) => self.unread.extend_from_slice(&room[..count]),
            Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(ReadyOutcome::Waiting),
            Err(e) if e.kind() == ErrorKind::ConnectionReset => {
                return Ok(ReadyOutcome::Ended { in_request: !self.last.closing });
            }
            Err(e) => return Err(e),
        }
        if !self.last.fits(&self.unread) {
            let Some(shape) = Shape::of(&self.unread) else { return Ok(ReadyOutcome::Waiting) };
            self.last = shape;
        }
        let status = status(&self.unread);
        self.unread.clear(); // one request under way, so nothing can follow its answer
        if !self.last.closing {
            self.ask()?;
        }
        Ok(ReadyOutcome::Answered(status))
    }
}

/// The digits after `HTTP/1.1 `.
fn status(answer: &[u8]) -> [u8; 3] {
    answer.get(9..12).and_then(|digits| digits.try_into().ok()).unwrap_or_default()
}

const REQUEST: &[u8] = b"GET /item HTTP/1.1\r\nHost: bench.test\r\n\r\n";

#[cfg(test)]
mod tests {
    use super::*;
    use bywash_harness::upstream::Upstream;
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
    fn an_answer_of_another_length_is_parsed_anew() {
        let shape = Shape::of(http::ok("12345").as_bytes()).unwrap();
        assert!(shape.fits(http::ok("54321").as_bytes()));
        assert!(!shape.fits(http::ok("1234").as_bytes()));
        assert!(!shape.fits(&http::ok("12345").as_bytes()[1..]));
        assert!(Shape::of(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n").is_none());
        assert!(!Shape::default().fits(b""));
    }
}
