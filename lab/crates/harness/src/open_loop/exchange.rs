//! One connection of the load and the request that is under way on it.

use super::End;
use crate::client_socket;
use crate::http::{self, Head, message_length};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::time::Instant;

const REQUEST: &[u8] = b"GET /item HTTP/1.1\r\nHost: bench.test\r\n\r\n";

/// A request under way.
#[derive(Debug, Clone, Copy)]
pub(super) struct Request {
    /// Its place in the order of all.
    pub(super) number: usize,
    /// When it was due.
    pub(super) due: Instant,
    /// When it was begun to be sent.
    pub(super) sent: Instant,
}

/// A connection.
#[derive(Debug)]
pub(super) struct Exchange {
    pub(super) stream: TcpStream,
    /// What is under way; idle otherwise.
    pub(super) request: Option<Request>,
    unsent: &'static [u8],
    /// A failed write takes the socket's error with it; the next read would not know.
    refused: bool,
    unread: Vec<u8>,
}

/// What a readiness has come to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ReadyOutcome {
    /// Nothing that matters.
    Waiting,
    /// The request has ended; `open` if the connection can carry another.
    Ended { end: End, open: bool },
    /// The connection has ended while nothing was under way.
    Closed,
}

impl Exchange {
    /// A connection from `source` on its way, with nothing to carry yet.
    pub(super) fn open(source: Ipv4Addr, port: u16) -> io::Result<Self> {
        let stream = client_socket::begin_connect(source, port)?;
        Ok(Self { stream, request: None, unsent: &[], refused: false, unread: Vec::new() })
    }

    /// Begins `request`; what cannot be sent yet goes when the socket is ready.
    pub(super) fn start_request(&mut self, request: Request) {
        self.request = Some(request);
        self.unsent = REQUEST;
        self.unread.clear();
        self.send();
    }

    /// Any error but a refusal shows itself in the next read, behind what has come before it.
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

    /// Sends and reads what it can.
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

    /// `None` until there is a whole answer or one that cannot become one.
    fn answered(&mut self) -> Option<ReadyOutcome> {
        if self.request.is_none() || !is_http(&self.unread) {
            let end = End::Garbled;
            return Some(ReadyOutcome::Ended { end, open: false })
                .filter(|_| self.request.is_some());
        }
        let head = Head::parse(&self.unread)?;
        message_length(&head, &self.unread)?;
        let end = head.subject.parse().map_or(End::Garbled, End::Status);
        let open = !http::says_close(&self.unread[..head.length]);
        Some(ReadyOutcome::Ended { end, open })
    }
}

fn is_http(bytes: &[u8]) -> bool {
    let start = b"HTTP/1.1 ";
    let length = start.len().min(bytes.len());
    bytes[..length] == start[..length]
}
