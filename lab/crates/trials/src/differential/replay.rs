//! Says to an origin what a gateway said to its upstream, and compares what it understands.
//!
//! Requests are sent one after the other, each after the answer to the one before, as a gateway
//! does it on a connection that it keeps. Behind them comes a canary, a request that cannot be
//! misread: if the origin still has bytes of the message to interpret, they will meet it.

use super::answers::{self, Answer, Next};
use super::observed::ObservedRequest;
use super::reading::{self, Reading, Request, Speaker, Tail};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

/// So long may an origin think about a whole request.
const ANSWER_BOUND: Duration = Duration::from_secs(5);
/// So long it is waited for an answer that should not come.
const NO_ANSWER_BOUND: Duration = Duration::from_millis(300);
const LONGEST: usize = 8 << 20;

/// The request behind every message.
pub const CANARY: &[u8] = b"GET /canary HTTP/1.1\r\nHost: canary.test\r\nConnection: close\r\n\r\n";

/// What an origin made of one connection's bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Replay {
    /// Requests that it understood as they are.
    pub agreed: usize,
    /// Requests that it refused, by status.
    pub refused: Vec<u16>,
    /// Requests that it answered without asking the application.
    pub own: usize,
    /// Requests that it understood where the reference sees none.
    pub beyond: usize,
    /// What it understood otherwise.
    pub faults: Vec<String>,
}

/// Replays the bytes that `reading` is of.
pub fn replay(port: u16, bytes: &[u8], reading: &Reading) -> io::Result<Replay> {
    let mut connection = OriginConnection::open(port)?;
    let mut replay = Replay::default();
    for request in &reading.requests {
        connection.send(bytes.get(request.span.clone()).unwrap_or_default());
        if !replay.judge(connection.answer(request, ANSWER_BOUND)?, request, &mut connection)? {
            return Ok(replay);
        }
    }
    let read = reading.requests.last().map_or(0, |last| last.span.end);
    let rest = bytes.get(read..).unwrap_or_default();
    match &reading.tail {
        Tail::Nothing => {
            let canary = canary();
            connection.send(CANARY);
            let refusals = replay.refused.len();
            replay.judge(connection.answer(&canary, ANSWER_BOUND)?, &canary, &mut connection)?;
            if replay.refused.len() > refusals {
                replay.faults.push("the origin refuses the canary request after it".into());
            }
        }
        Tail::Head => replay.unfinished(&mut connection, rest, None)?,
        Tail::Body(request) => replay.unfinished(&mut connection, rest, Some(request))?,
        Tail::Fault { .. } => {
            connection.send(rest);
            connection.send(CANARY);
            let (answers, _) = answers::all(&connection.rest(NO_ANSWER_BOUND)?, &[], true);
            replay.beyond +=
                answers.iter().filter(|answer| ObservedRequest::of(answer).is_some()).count();
        }
    }
    Ok(replay)
}

/// The canary, understood.
pub fn canary() -> Request {
    reading::read(CANARY, Speaker::Gateway).requests.swap_remove(0)
}

impl Replay {
    /// Whether the connection goes on after this answer.
    fn judge(
        &mut self,
        outcome: ReadOutcome,
        request: &Request,
        connection: &mut OriginConnection,
    ) -> io::Result<bool> {
        let answer = match outcome {
            ReadOutcome::Answer(answer) => answer,
            ReadOutcome::Silence => return self.silence(connection).map(|()| false),
            ReadOutcome::End => return Ok(false),
        };
        match ObservedRequest::of(&answer) {
            Some(observed) => match observed.differs(request) {
                Some(difference) => self.faults.push(difference),
                None => self.agreed += 1,
            },
            None if answer.status >= 400 => self.refused.push(answer.status),
            None => self.own += 1,
        }
        if !answer.says_close() && !request.is_last() {
            return Ok(true);
        }
        if !connection.rest(NO_ANSWER_BOUND)?.is_empty() {
            self.faults.push("the origin sends more answers than there are requests".into());
        }
        Ok(false)
    }

    /// Puma says nothing to some requests that it does not like, and refuses what comes next. An
    /// origin that still waits for the end of a request would take the canary for a part of it.
    fn silence(&mut self, connection: &mut OriginConnection) -> io::Result<()> {
        connection.send(CANARY);
        match connection.answer(&canary(), ANSWER_BOUND)? {
            ReadOutcome::Answer(answer) if answer.status >= 400 => self.refused.push(answer.status),
            ReadOutcome::End => {}
            ReadOutcome::Answer(_) | ReadOutcome::Silence => {
                self.faults.push("the origin waits for more of a complete request".into());
            }
        }
        Ok(())
    }

    /// A request that the gateway broke off may be seen as far as it came, but no other.
    fn unfinished(
        &mut self,
        connection: &mut OriginConnection,
        part: &[u8],
        request: Option<&Request>,
    ) -> io::Result<()> {
        connection.send(part);
        connection.finish();
        let (answers, _) = answers::all(&connection.rest(NO_ANSWER_BOUND)?, &[], true);
        let observed: Vec<ObservedRequest> =
            answers.iter().filter_map(ObservedRequest::of).collect();
        match (&observed[..], request) {
            ([], _) => {}
            ([observed], Some(request)) => {
                let part = |body: &Vec<u8>| request.body.starts_with(body);
                let body = observed.body.as_ref().filter(|body| !part(body)).cloned();
                // If it is a part of the body, it is compared as if it were the whole.
                let body = Some(body.unwrap_or_else(|| request.body.clone()));
                self.faults.extend(ObservedRequest { body, ..observed.clone() }.differs(request));
            }
            _ => self.faults.push("the origin sees a request where none ends".into()),
        }
        Ok(())
    }
}

/// What came in time.
#[derive(Debug, PartialEq, Eq)]
enum ReadOutcome {
    Answer(Answer),
    /// The connection has ended.
    End,
    Silence,
}

/// A connection to an origin.
#[derive(Debug)]
pub struct OriginConnection {
    stream: TcpStream,
    received: Vec<u8>,
    ended: bool,
}

impl OriginConnection {
    /// Connects.
    pub fn open(port: u16) -> io::Result<Self> {
        let stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_nodelay(true)?;
        stream.set_write_timeout(Some(ANSWER_BOUND))?;
        Ok(Self { stream, received: Vec::new(), ended: false })
    }

    /// Sends, if anybody listens.
    pub fn send(&mut self, bytes: &[u8]) {
        // An origin may have answered and closed before it has read everything.
        let _ = self.stream.write_all(bytes);
    }

    /// Says that no more will be sent.
    fn finish(&mut self) {
        let _ = self.stream.shutdown(Shutdown::Write);
    }

    fn answer(&mut self, request: &Request, bound: Duration) -> io::Result<ReadOutcome> {
        let (start, to_head) = (Instant::now(), request.method == b"HEAD");
        loop {
            match answers::next(&self.received, to_head, self.ended) {
                Next::Whole(answer, length) => {
                    self.received.drain(..length);
                    if !answer.is_interim() {
                        return Ok(ReadOutcome::Answer(answer));
                    }
                }
                Next::Garbage => return Ok(ReadOutcome::End),
                Next::Unfinished if self.ended => return Ok(ReadOutcome::End),
                Next::Unfinished if start.elapsed() > bound => return Ok(ReadOutcome::Silence),
                Next::Unfinished => self.receive(bound.saturating_sub(start.elapsed()))?,
            }
        }
    }

    /// Everything until the end, or until nothing has come for so long.
    pub fn rest(&mut self, bound: Duration) -> io::Result<Vec<u8>> {
        loop {
            let before = self.received.len();
            self.receive(bound)?;
            if self.ended || self.received.len() == before {
                return Ok(std::mem::take(&mut self.received));
            }
        }
    }

    /// Whether the other side has closed.
    pub fn has_ended(&self) -> bool {
        self.ended
    }

    fn receive(&mut self, bound: Duration) -> io::Result<()> {
        let mut room = [0; 16 * 1024];
        self.stream.set_read_timeout(Some(bound.max(Duration::from_millis(1))))?;
        match self.stream.read(&mut room) {
            Ok(count) if count > 0 && self.received.len() < LONGEST => {
                self.received.extend(room.get(..count).unwrap_or_default());
            }
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Ok(_) | Err(_) => self.ended = true,
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::reflector::Reflector;
    use super::*;

    fn replayed(bytes: &[u8], reading: &Reading) -> Replay {
        let reflector = Reflector::open().unwrap();
        replay(reflector.port(), bytes, reading).unwrap()
    }

    #[test]
    fn an_origin_that_reads_as_the_reference_does_agrees() {
        let bytes = b"POST /1 HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nab\
                      HEAD /2 HTTP/1.1\r\nHost: a\r\n\r\n";
        let replay = replayed(bytes, &reading::read(bytes, Speaker::Gateway));
        assert_eq!(replay, Replay { agreed: 3, ..Replay::default() });
    }

    #[test]
    fn bytes_that_an_origin_takes_for_a_second_request_are_found() {
        let inner = "GET /inner HTTP/1.1\r\nHost: a\r\n\r\n";
        let head = "POST /1 HTTP/1.1\r\nHost: a\r\n\r\n";
        let bytes = format!("{head}{inner}");
        // As if the reference had found a body where the origin finds a request.
        let mut reading = reading::read(bytes.as_bytes(), Speaker::Gateway);
        reading.requests.truncate(1);
        reading.requests[0].span.end = bytes.len();
        reading.requests[0].body = inner.into();
        let faults = replayed(bytes.as_bytes(), &reading).faults;
        assert!(faults.iter().any(|fault| fault.starts_with("body")), "{faults:?}");
        assert!(faults.iter().any(|fault| fault.starts_with("target")), "{faults:?}");
    }

    #[test]
    fn a_request_that_breaks_off_is_no_request() {
        let bytes = b"POST /1 HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nab";
        let replay = replayed(bytes, &reading::read(bytes, Speaker::Gateway));
        assert_eq!(replay, Replay::default());
    }
}
