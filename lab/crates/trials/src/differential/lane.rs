//! A gateway between a test client and a recorder, both driven by one thread.
//!
//! The recorder is an upstream. It keeps every received byte, and answers 204 to each request that
//! the [reference](super::reading) finds in these bytes. Client and recorder are read by the same
//! loop. Bytes that have arrived when the client's connection ends therefore belong to that client,
//! and no timer decides which message a byte came from.

use super::answers::{self, Answer};
use super::front::Front;
use super::program::Program;
use super::reading::{self, Reading, Speaker, Tail};
use std::collections::BTreeMap;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use bywash_harness::sys::Epoll;

const CLIENT: usize = 0;
const LISTENER: usize = 1;
/// Maximum wait for events in milliseconds, after which the loop checks its end conditions again.
const LOOK: i32 = 5;
/// Maximum time in which a gateway must close a connection after its peer has finished sending.
const CLOSE_BOUND: Duration = Duration::from_secs(1);
/// Maximum bytes that the recorder keeps of one upstream connection.
const LONGEST: usize = 8 << 20;
const ANSWER: &[u8] = b"HTTP/1.1 204 No Content\r\n\r\n";

/// The conditions under which a trial stops waiting for a gateway that does not close.
#[derive(Debug, Clone, Copy)]
pub struct Patience {
    /// Number of final answers after which no more are expected; `None` to wait until the
    /// connection ends.
    pub answers: Option<usize>,
    /// Maximum time without any byte from the gateway.
    pub limit: Duration,
}

/// The result of sending one message through the gateway.
#[derive(Debug, Clone)]
pub struct Trial {
    /// The answers that the client received, without interim (1xx) ones.
    pub answers: Vec<Answer>,
    /// Whether the gateway closed the client's connection before the client did.
    pub closed: bool,
    /// The bytes that the upstream received, with one entry for each connection. The entries are in
    /// the order in which the connections began.
    pub streams: Vec<Stream>,
}

/// The bytes that the upstream received on one connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stream {
    /// All received bytes of the connection.
    pub bytes: Vec<u8>,
    /// The reference's reading of the bytes.
    pub reading: Reading,
    /// The position of each complete request of this connection in the order of arrival, counted
    /// over all connections of the trial.
    pub arrivals: Vec<usize>,
    /// Whether the gateway kept the connection open after the message.
    pub kept: bool,
}

impl Trial {
    /// Returns the complete requests that the upstream received on all connections, in the order of
    /// arrival.
    pub fn requests(&self) -> impl Iterator<Item = &reading::Request> {
        let mut all: Vec<_> = self
            .streams
            .iter()
            .flat_map(|stream| stream.arrivals.iter().zip(&stream.reading.requests))
            .collect();
        all.sort_by_key(|(arrival, _)| *arrival);
        all.into_iter().map(|(_, request)| request)
    }

    /// Returns the number of bytes that the upstream received on all connections.
    pub fn bytes(&self) -> usize {
        self.streams.iter().map(|stream| stream.bytes.len()).sum()
    }
}

/// A running gateway, with the upstream connections behind it.
#[derive(Debug)]
pub struct Lane {
    gateway: Program,
    epoll: Epoll,
    tokens: Vec<usize>,
    listener: TcpListener,
    upstream_connections: BTreeMap<usize, UpstreamConnection>,
    next: usize,
    /// Number of complete requests that the upstream has received in the current trial.
    arrived: usize,
}

/// A connection from the gateway to the recorder.
#[derive(Debug)]
struct UpstreamConnection {
    /// The socket; `None` after the connection has ended.
    stream: Option<TcpStream>,
    /// Bytes received since the last trial.
    bytes: Vec<u8>,
    /// Number of the bytes in `bytes` that belong to answered requests.
    answered: usize,
    arrivals: Vec<usize>,
}

#[derive(Debug)]
struct Client<'a> {
    stream: TcpStream,
    unsent: &'a [u8],
    received: Vec<u8>,
    ended: bool,
}

impl Lane {
    /// Starts the gateway. Returns `None` if `front` stands for a direct connection without any
    /// gateway.
    pub fn open(front: &Front) -> io::Result<Option<Self>> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        listener.set_nonblocking(true)?;
        let epoll = Epoll::new(64)?;
        epoll.add(&listener, LISTENER)?;
        let Some(gateway) = front.start(listener.local_addr()?.port())? else { return Ok(None) };
        let (tokens, upstream_connections) = (Vec::new(), BTreeMap::new());
        let next = LISTENER + 1;
        Ok(Some(Self { gateway, epoll, tokens, listener, upstream_connections, next, arrived: 0 }))
    }

    /// Sends a message through the gateway and returns the result. `heads` tells for each request
    /// of the message whether its method is HEAD.
    pub fn run(&mut self, message: &[u8], heads: &[bool], patience: Patience) -> io::Result<Trial> {
        let stream = TcpStream::connect(("127.0.0.1", self.gateway.port()))?;
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        self.epoll.add(&stream, CLIENT)?;
        let mut client = Client { stream, unsent: message, received: Vec::new(), ended: false };
        self.converse(&mut client, heads, patience)?;
        let closed = client.ended;
        self.part(&mut client)?;
        let (answers, _) = answers::all(&client.received, heads, client.ended);
        drop(client);
        self.settle()?;
        if !self.gateway.runs() {
            return Err(io::Error::other(format!(
                "the gateway ended unexpectedly:\n{}",
                self.gateway.log()
            )));
        }
        let answers = answers.into_iter().filter(|answer| !answer.is_interim()).collect();
        Ok(Trial { answers, closed, streams: self.take() })
    }

    /// Exchanges bytes until the client has enough answers, the gateway closes, or no byte has
    /// arrived for `patience.limit`.
    fn converse(
        &mut self,
        client: &mut Client<'_>,
        heads: &[bool],
        patience: Patience,
    ) -> io::Result<()> {
        let mut since = Instant::now();
        while !client.ended && since.elapsed() < patience.limit {
            client.send();
            if self.turn(client, LOOK)? {
                since = Instant::now();
                let (answers, _) = answers::all(&client.received, heads, false);
                let finals = answers.iter().filter(|answer| !answer.is_interim()).count();
                if patience.answers.is_some_and(|enough| finals >= enough) {
                    // Read what is still in flight, until no byte has arrived for a moment.
                    while self.turn(client, 2 * LOOK)? && !client.ended {}
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Closes the client's sending side, and waits at most [`CLOSE_BOUND`] for the gateway to
    /// close.
    fn part(&mut self, client: &mut Client<'_>) -> io::Result<()> {
        // The connection may already be closed.
        let _ = client.stream.shutdown(Shutdown::Write);
        let start = Instant::now();
        while !client.ended && start.elapsed() < CLOSE_BOUND {
            self.turn(client, LOOK)?;
        }
        Ok(())
    }

    /// Reads all bytes that have arrived at the upstream. If a request is incomplete there, waits
    /// at most [`CLOSE_BOUND`] for the gateway to complete it or to close its connection.
    fn settle(&mut self) -> io::Result<()> {
        let start = Instant::now();
        while self.look(0, None)? {}
        while self.upstream_connections.values().any(UpstreamConnection::is_unfinished)
            && start.elapsed() < CLOSE_BOUND
        {
            self.look(LOOK, None)?;
        }
        Ok(())
    }

    fn turn(&mut self, client: &mut Client<'_>, millis: i32) -> io::Result<bool> {
        self.look(millis, Some(client))
    }

    /// Waits at most `millis` milliseconds for events and handles them. Returns whether any event
    /// occurred.
    fn look(&mut self, millis: i32, mut client: Option<&mut Client<'_>>) -> io::Result<bool> {
        let mut tokens = std::mem::take(&mut self.tokens);
        self.epoll.wait(millis, &mut tokens)?;
        for token in &tokens {
            match (*token, &mut client) {
                (CLIENT, Some(client)) => client.receive(),
                (CLIENT, None) => {}
                (LISTENER, _) => self.accept()?,
                (connection, _) => {
                    if let Some(connection) = self.upstream_connections.get_mut(&connection) {
                        connection.receive(&mut self.arrived);
                    }
                }
            }
        }
        let any = !tokens.is_empty();
        self.tokens = tokens;
        Ok(any)
    }

    fn accept(&mut self) -> io::Result<()> {
        while let Ok((stream, _)) = self.listener.accept() {
            stream.set_nonblocking(true)?;
            stream.set_nodelay(true)?;
            self.epoll.add(&stream, self.next)?;
            self.upstream_connections.insert(self.next, UpstreamConnection::new(stream));
            self.next += 1;
        }
        Ok(())
    }

    /// Returns what the upstream received since the last trial, with one entry for each connection,
    /// and forgets it.
    fn take(&mut self) -> Vec<Stream> {
        let upstream_connections = self
            .upstream_connections
            .values_mut()
            .filter(|connection| !connection.bytes.is_empty());
        let streams = upstream_connections.map(UpstreamConnection::take).collect();
        self.upstream_connections.retain(|_, connection| connection.stream.is_some());
        streams
    }
}

impl UpstreamConnection {
    fn new(stream: TcpStream) -> Self {
        Self { stream: Some(stream), bytes: Vec::new(), answered: 0, arrivals: Vec::new() }
    }

    fn receive(&mut self, arrived: &mut usize) {
        let mut room = [0; 16 * 1024];
        while let Some(stream) = &mut self.stream {
            match stream.read(&mut room) {
                Ok(count) if count > 0 && self.bytes.len() < LONGEST => {
                    self.bytes.extend(room.get(..count).unwrap_or_default());
                }
                Err(e) if e.kind() == ErrorKind::WouldBlock => break,
                Ok(_) | Err(_) => self.stream = None,
            }
        }
        self.answer(arrived);
    }

    /// Answers each complete request with 204. Bytes that are not a valid request close the
    /// connection.
    fn answer(&mut self, arrived: &mut usize) {
        let reading = reading::read(self.bytes.get(self.answered..).unwrap_or_default(), SPEAKER);
        for request in &reading.requests {
            *arrived += 1;
            self.arrivals.push(*arrived);
            if let Some(stream) = &mut self.stream {
                // The gateway may have closed the connection; that is not an error here.
                let _ = stream.write_all(ANSWER);
                if request.is_last() {
                    self.stream = None;
                }
            }
        }
        self.answered += reading.requests.last().map_or(0, |last| last.span.end);
        if matches!(reading.tail, Tail::Fault { .. }) {
            self.stream = None;
        }
    }

    /// Returns whether the gateway keeps a connection open on which it has sent an incomplete
    /// request.
    fn is_unfinished(&self) -> bool {
        self.stream.is_some() && self.answered < self.bytes.len()
    }

    /// Returns the bytes received on this connection, and forgets them. Closes the connection if
    /// its last request is incomplete, because the rest of that request would become the start of
    /// the next trial.
    fn take(&mut self) -> Stream {
        let kept = self.stream.is_some();
        if self.is_unfinished() {
            self.stream = None;
        }
        self.answered = 0;
        let bytes = std::mem::take(&mut self.bytes);
        let arrivals = std::mem::take(&mut self.arrivals);
        Stream { reading: reading::read(&bytes, SPEAKER), bytes, arrivals, kept }
    }
}

/// The rules by which the recorder reads messages: those for messages that a gateway sends.
const SPEAKER: Speaker = Speaker::Gateway;

impl Client<'_> {
    fn send(&mut self) {
        while !self.unsent.is_empty() {
            match self.stream.write(self.unsent) {
                Ok(count) => self.unsent = self.unsent.get(count..).unwrap_or_default(),
                Err(e) if e.kind() == ErrorKind::WouldBlock => return,
                // The gateway reads no more. Its earlier answers can still be read.
                Err(_) => self.unsent = &[],
            }
        }
    }

    fn receive(&mut self) {
        let mut room = [0; 16 * 1024];
        while !self.ended {
            match self.stream.read(&mut room) {
                Ok(0) => self.ended = true,
                Ok(count) => self.received.extend(room.get(..count).unwrap_or_default()),
                Err(e) if e.kind() == ErrorKind::WouldBlock => return,
                Err(_) => self.ended = true,
            }
        }
    }
}
