//! The behaviours of an upstream, normal and faulty.

use crate::http;
use crate::sys;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

/// The upstream's behaviour. Connections stay open unless the variant says otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Behaviour {
    /// Answers immediately with 200 and 64 bytes.
    Answer,
    /// Answers like `Answer`, but with the given delay after the request. Any number of requests
    /// can run concurrently.
    After(Duration),
    /// Reads requests and never answers.
    Hang,
    /// Acts like a crashed process: resets all connections and refuses new ones.
    Crash,
    /// Acts like a stopped process: closes all connections and refuses new ones.
    Refuse,
    /// Sends part of an answer with `Content-Length`, then resets.
    CutLength,
    /// Sends part of a chunked answer, then closes in an orderly way.
    CutChunked,
    /// Sends bytes that are not HTTP.
    Garbage,
    /// Shuts down its sending side instead of answering, and continues to read.
    HalfClose,
}

/// A connection of the upstream, with its received bytes.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) stream: TcpStream,
    /// Received bytes that are not a complete request yet.
    unread: Vec<u8>,
}

/// A complete request.
#[derive(Debug, Clone, Copy)]
pub(super) struct Request {
    /// Whether the request is for `/hold`.
    pub(super) is_held: bool,
}

/// Returns the number of bytes of the request at the start of `bytes`; `None` until the request is
/// complete. Only a POST is assumed to have a body. No other request of the harness has one, and
/// parsing the length of each would cost more CPU time than everything else on the load generator's
/// core.
fn request_length(bytes: &[u8]) -> io::Result<Option<usize>> {
    if !bytes.starts_with(b"POST ") {
        return Ok(http::head_length(bytes));
    }
    http::request_length(bytes)
}

/// Returns the bytes of a request head that follow the method.
fn subject(request: &[u8]) -> &[u8] {
    let start = request.iter().position(|&byte| byte == b' ').map_or(0, |at| at + 1);
    &request[start..]
}

const PART: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 64\r\n\r\nnot all of it";
const CHUNKED_PART: &[u8] = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\npart\r\n";
const GARBAGE: &[u8] = b"\x00\x16\x03 no HTTP at all\r\n\r\n\xff";

impl Connection {
    pub(super) fn new(stream: TcpStream) -> Self {
        Self { stream, unread: Vec::new() }
    }

    /// Reads once and appends the received bytes. Here and in the functions below, an error means
    /// the end of the connection.
    pub(super) fn read(&mut self, room: &mut [u8]) -> io::Result<()> {
        match self.stream.read(room) {
            Ok(0) => Err(ErrorKind::UnexpectedEof.into()),
            Ok(count) => {
                self.unread.extend_from_slice(&room[..count]);
                Ok(())
            }
            Err(e) if e.kind() == ErrorKind::WouldBlock => Ok(()),
            Err(e) => Err(e),
        }
    }

    /// Removes and returns the next complete request of the received bytes; `None` until one is
    /// complete.
    pub(super) fn next_request(&mut self) -> io::Result<Option<Request>> {
        let Some(length) = request_length(&self.unread)? else { return Ok(None) };
        let is_held = subject(&self.unread).starts_with(b"/hold");
        self.unread.drain(..length);
        Ok(Some(Request { is_held }))
    }

    /// Responds to a request according to `behaviour`. `answer` is the normal response.
    pub(super) fn reply(&mut self, behaviour: Behaviour, answer: &[u8]) -> io::Result<()> {
        let end = || Err(ErrorKind::ConnectionAborted.into());
        match behaviour {
            Behaviour::Answer | Behaviour::After(_) => self.stream.write_all(answer),
            Behaviour::Hang | Behaviour::Crash | Behaviour::Refuse => Ok(()),
            Behaviour::CutLength => {
                self.stream.write_all(PART)?;
                sys::reset_on_close(&self.stream)?;
                end()
            }
            Behaviour::CutChunked => {
                self.stream.write_all(CHUNKED_PART)?;
                end()
            }
            Behaviour::Garbage => self.stream.write_all(GARBAGE),
            Behaviour::HalfClose => self.stream.shutdown(Shutdown::Write),
        }
    }
}
