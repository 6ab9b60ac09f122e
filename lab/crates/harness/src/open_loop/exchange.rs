//! One connection of the load, with the request in flight on it.

use super::End;
use crate::client_socket;
use crate::http;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::time::Instant;

const REQUEST: &[u8] = b"GET /item HTTP/1.1\r\nHost: bench.test\r\n\r\n";

/// A request in flight.
#[derive(Debug, Clone, Copy)]
pub(super) struct Request {
    /// Index of the request within the load.
    pub(super) number: usize,
    /// Time at which the request was due.
    pub(super) due: Instant,
    /// Time at which sending started.
    pub(super) sent: Instant,
}

/// A client connection.
#[derive(Debug)]
pub(super) struct Exchange {
    pub(super) stream: TcpStream,
    /// The request in flight; `None` while the connection is idle.
    pub(super) request: Option<Request>,
    unsent: &'static [u8],
    /// Whether a write failed with `ECONNREFUSED`. The failed write clears the socket's error, so
    /// the next read would not report it.
    refused: bool,
    unread: Vec<u8>,
}

/// The result of handling readiness.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ReadyOutcome {
    /// The request has not ended.
    Waiting,
    /// The request has ended. `open` means that the connection can carry another one.
    Ended { end: End, open: bool },
    /// The connection has ended while it was idle.
    Closed,
}

impl Exchange {
    /// Starts a connect from `source`, with no request yet.
    pub(super) fn open(source: Ipv4Addr, port: u16) -> io::Result<Self> {
        let stream = client_socket::begin_connect(source, port)?;
        Ok(Self { stream, request: None, unsent: &[], refused: false, unread: Vec::new() })
    }

    /// Starts `request`. Bytes that cannot be sent now are sent when the socket is ready.
    pub(super) fn start_request(&mut self, request: Request) {
        self.request = Some(request);
        self.unsent = REQUEST;
        self.unread.clear();
        self.send();
    }

    /// Sends what the socket accepts. Any error except a refusal shows up in the next read, after
    /// the bytes that were received before it.
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

    /// Sends and reads as much as possible.
    pub(super) fn on_ready(&mut self, room: &mut [u8]) -> ReadyOutcome {
        self.send();
        if self.refused {
            return self.ended(End::Refused);
        }
        loop {
            match self.stream.read(room) {
                Ok(0) => return self.ended(End::Lost),
                Ok(count) => self.unread.extend_from_slice(&room[..count]),
                Err(e) => match e.kind() {
                    ErrorKind::Interrupted => {}
                    ErrorKind::WouldBlock | ErrorKind::NotConnected => {
                        return ReadyOutcome::Waiting;
                    }
                    ErrorKind::ConnectionRefused => return self.ended(End::Refused),
                    _ => return self.ended(End::Lost),
                },
            }
            if let Some(outcome) = self.answered() {
                return outcome;
            }
        }
    }

    fn ended(&self, end: End) -> ReadyOutcome {
        match self.request {
            None => ReadyOutcome::Closed,
            Some(_) if self.unread.is_empty() => ReadyOutcome::Ended { end, open: false },
            Some(_) => ReadyOutcome::Ended { end: End::Cut, open: false },
        }
    }

    /// Returns `None` until the bytes are a complete response or can no longer become one.
    fn answered(&self) -> Option<ReadyOutcome> {
        self.request?;
        let (end, open) = match http::parse_answer(&self.unread) {
            Ok(head) => head.map(|head| (End::Status(head.status.as_u16()), head.keep_alive))?,
            Err(_) => (End::Garbled, false),
        };
        Some(ReadyOutcome::Ended { end, open })
    }
}
