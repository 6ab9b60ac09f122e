//! One connection of the load generator, with the request in flight on it.

use super::End;
use crate::client_socket;
use crate::http::IncomingAnswer;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::time::Instant;

const REQUEST: &[u8] = b"GET /item HTTP/1.1\r\nHost: bench.test\r\n\r\n";

/// A request in flight.
#[derive(Debug, Clone, Copy)]
pub(super) struct Request {
    /// Position of the request in the order in which the requests are due, from 0.
    pub(super) number: usize,
    /// Time at which the request was due.
    pub(super) due: Instant,
    /// Time at which sending started.
    pub(super) sent: Instant,
}

/// A client connection and the state of its exchange.
#[derive(Debug)]
pub(super) struct Exchange {
    pub(super) stream: TcpStream,
    /// The request in flight; `None` while the connection is idle.
    pub(super) request: Option<Request>,
    unsent: &'static [u8],
    /// Whether a write failed with `ECONNREFUSED`. The failed write clears the socket's error, so
    /// the next read would not report it.
    refused: bool,
    answer: IncomingAnswer,
    /// Whether any byte of the answer has arrived.
    has_begun: bool,
}

/// The result of handling a connection that is ready.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ReadyOutcome {
    /// The request has not ended.
    Waiting,
    /// The request has ended. `open` means that the connection can carry another request.
    Ended { end: End, open: bool },
    /// The connection ended while it was idle.
    Closed,
}

impl Exchange {
    /// Starts a connect from `source` to `port`, without a request.
    pub(super) fn open(source: Ipv4Addr, port: u16) -> io::Result<Self> {
        let stream = client_socket::begin_connect(source, port)?;
        let answer = IncomingAnswer::default();
        Ok(Self { stream, request: None, unsent: &[], refused: false, answer, has_begun: false })
    }

    /// Starts `request` on this connection. Bytes that cannot be sent now are sent when the socket
    /// is ready.
    pub(super) fn start_request(&mut self, request: Request) {
        self.request = Some(request);
        self.unsent = REQUEST;
        (self.answer, self.has_begun) = (IncomingAnswer::default(), false);
        self.send();
    }

    /// Sends what the socket accepts. The next read reports any error except a refusal, after the
    /// bytes that were received before the error.
    fn send(&mut self) {
        while !self.unsent.is_empty() {
            match self.stream.write(self.unsent) {
                Ok(count) => self.unsent = &self.unsent[count..],
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => {
                    self.refused |= e.kind() == ErrorKind::ConnectionRefused;
                    return;
                }
            }
        }
    }

    /// Sends and reads as much as possible, with `room` as buffer.
    pub(super) fn on_ready(&mut self, room: &mut [u8]) -> ReadyOutcome {
        self.send();
        if self.refused {
            return self.ended(End::Refused);
        }
        loop {
            match self.stream.read(room) {
                Ok(count) => {
                    if let Some(outcome) = self.receive(&room[..count]) {
                        return outcome;
                    }
                }
                Err(e) => match e.kind() {
                    ErrorKind::Interrupted => {}
                    ErrorKind::WouldBlock | ErrorKind::NotConnected => {
                        return ReadyOutcome::Waiting;
                    }
                    ErrorKind::ConnectionRefused => return self.ended(End::Refused),
                    _ => return self.ended(End::Lost),
                },
            }
        }
    }

    fn ended(&self, end: End) -> ReadyOutcome {
        match self.request {
            None => ReadyOutcome::Closed,
            Some(_) if self.has_begun => ReadyOutcome::Ended { end: End::Cut, open: false },
            Some(_) => ReadyOutcome::Ended { end, open: false },
        }
    }

    /// Takes bytes that have arrived; no bytes mean that the connection has ended. Returns `None`
    /// until the bytes are a complete response or can no longer become one.
    fn receive(&mut self, bytes: &[u8]) -> Option<ReadyOutcome> {
        let is_over = bytes.is_empty();
        if self.request.is_none() {
            return is_over.then_some(ReadyOutcome::Closed);
        }
        match self.answer.feed(bytes) {
            Ok(Some(head)) => {
                let end = End::Status(head.status.as_u16());
                Some(ReadyOutcome::Ended { end, open: head.keep_alive })
            }
            Ok(None) | Err(_) if is_over => Some(self.ended(End::Lost)),
            Ok(None) => {
                self.has_begun = true;
                None
            }
            Err(_) => Some(ReadyOutcome::Ended { end: End::Garbled, open: false }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Shutdown, TcpListener};
    use std::time::Duration;

    /// Returns the outcome of a request whose connection carries the bytes `answer` and then ends.
    fn outcome(answer: &str) -> ReadyOutcome {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let mut exchange = Exchange::open(Ipv4Addr::LOCALHOST, port).unwrap();
        let (mut peer, _) = listener.accept().unwrap();
        let now = Instant::now();
        exchange.start_request(Request { number: 0, due: now, sent: now });
        peer.write_all(answer.as_bytes()).unwrap();
        peer.shutdown(Shutdown::Write).unwrap();
        exchange.stream.set_nonblocking(false).unwrap();
        exchange.stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        exchange.on_ready(&mut [0; 16])
    }

    #[test]
    fn an_answer_without_a_length_is_complete_when_its_connection_ends() {
        let head = "HTTP/1.1 503 x\r\nConnection: close\r\n";
        for (answer, end, open) in [
            (format!("{head}\r\nbusy"), End::Status(503), false),
            (format!("{head}\r\n"), End::Status(503), false),
            (format!("{head}Content-Length: 4\r\n\r\nbusy"), End::Status(503), false),
            (crate::http::ok("a"), End::Status(200), true),
            (format!("{head}Content-Length: 5\r\n\r\nbusy"), End::Cut, false),
            (head.into(), End::Cut, false),
            (String::new(), End::Lost, false),
            ("\0".into(), End::Garbled, false),
        ] {
            assert_eq!(outcome(&answer), ReadyOutcome::Ended { end, open }, "{answer}");
        }
    }
}
