//! Replays the bytes that a gateway forwarded to an origin, and compares how the origin understands
//! them.
//!
//! Each request is sent after the answer to the previous one, as a gateway does on a kept
//! connection. After the last request, the replay sends a canary: a request that cannot be misread.
//! An origin that still expects bytes of the message takes the canary for such bytes.

use super::answers::{self, Answer, Next};
use super::observed::ObservedRequest;
use super::reading::{self, Reading, Request, Speaker, Tail};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

/// Time limit for an origin's answer to a complete request.
const ANSWER_BOUND: Duration = Duration::from_secs(5);
/// Time to wait before concluding that an origin sends no answer. A correct origin sends none here.
const NO_ANSWER_BOUND: Duration = Duration::from_millis(300);
const LONGEST: usize = 8 << 20;

/// The canary, which follows every message.
pub const CANARY: &[u8] = b"GET /canary HTTP/1.1\r\nHost: canary.test\r\nConnection: close\r\n\r\n";

/// The result of replaying the bytes of one connection to an origin.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Replay {
    /// Number of requests that the origin understood as the reference does.
    pub agreed: usize,
    /// Statuses of the requests that the origin refused.
    pub refused: Vec<u16>,
    /// Number of requests that the origin answered without calling the application.
    pub own: usize,
    /// Number of requests that the origin understood but the reference does not find in the bytes.
    pub beyond: usize,
    /// Descriptions of the requests that the origin understood differently from the reference.
    pub faults: Vec<String>,
}

/// Replays `bytes` to the origin at `port`. `reading` is the reference's reading of `bytes`.
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

/// Returns the canary as a request of the reference.
pub fn canary() -> Request {
    reading::read(CANARY, Speaker::Gateway).requests.swap_remove(0)
}

impl Replay {
    /// Records the outcome of a request, and returns whether the connection can be used for the
    /// next request.
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

    /// Tests an origin that did not answer, by sending the canary. Puma sends nothing in response
    /// to some requests that it rejects, and refuses the request that follows. An origin that still
    /// waits for the end of a request takes the canary as part of that request.
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

    /// Replays an incomplete request, of which `part` was received. The origin may report that part
    /// as a request, but no other request.
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
                // If the origin reports only a part of the body, the other values are compared as
                // if the body were complete.
                let body = Some(body.unwrap_or_else(|| request.body.clone()));
                self.faults.extend(ObservedRequest { body, ..observed.clone() }.differs(request));
            }
            _ => self.faults.push("the origin sees a request where none ends".into()),
        }
        Ok(())
    }
}

/// The outcome of waiting for an origin's answer.
#[derive(Debug, PartialEq, Eq)]
enum ReadOutcome {
    Answer(Answer),
    /// The connection ended without an answer.
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
    /// Connects to the origin at `port` of 127.0.0.1.
    pub fn open(port: u16) -> io::Result<Self> {
        let stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_nodelay(true)?;
        stream.set_write_timeout(Some(ANSWER_BOUND))?;
        Ok(Self { stream, received: Vec::new(), ended: false })
    }

    /// Sends `bytes` and ignores errors.
    pub fn send(&mut self, bytes: &[u8]) {
        // An origin may have answered and closed before it has read everything.
        let _ = self.stream.write_all(bytes);
    }

    /// Shuts down the sending side of the connection.
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

    /// Reads until the origin closes the connection, or until no bytes have arrived for `bound`.
    /// Returns the bytes.
    pub fn rest(&mut self, bound: Duration) -> io::Result<Vec<u8>> {
        loop {
            let before = self.received.len();
            self.receive(bound)?;
            if self.ended || self.received.len() == before {
                return Ok(std::mem::take(&mut self.received));
            }
        }
    }

    /// Returns whether the origin has closed the connection.
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
        // Simulates that the reference found a body where the origin finds a request.
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
