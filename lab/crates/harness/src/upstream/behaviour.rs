//! What an upstream can do with a request, well or badly.

use crate::http::{self, Head, message_length};
use crate::sys;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

/// What the upstream does with requests; connections are kept open where nothing else is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Behaviour {
    /// Answers at once with 200 and 64 bytes.
    Answer,
    /// The same after so long, however many it has.
    After(Duration),
    /// Reads and says nothing.
    Hang,
    /// Has died: resets all connections and refuses new ones.
    Crash,
    /// Has been stopped: closes all connections and refuses new ones.
    Refuse,
    /// Sends a part of an answer that says its length, and a reset.
    CutLength,
    /// Sends a part of a chunked answer, and an orderly end.
    CutChunked,
    /// Sends what is not HTTP.
    Garbage,
    /// Closes its sending side instead of answering, and keeps the other open.
    HalfClose,
}

/// A connection and what has come on it.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) stream: TcpStream,
    /// The beginning of a request whose end has not come.
    unread: Vec<u8>,
}

/// A request that has come whole.
#[derive(Debug, Clone, Copy)]
pub(super) struct Request {
    /// It is for `/hold`.
    pub(super) is_held: bool,
}

/// Bytes of the request at the start of `bytes`; only a POST is taken to have a body, as all else
/// here has none and looking for its length would cost the load's core more than the rest.
fn request_length(bytes: &[u8]) -> Option<usize> {
    if !bytes.starts_with(b"POST ") {
        return http::head_length(bytes);
    }
    message_length(&Head::parse(bytes)?, bytes)
}

/// The second word.
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

    /// Reads once; an error is the end of the connection. So below.
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

    /// Takes the next whole request out of what has come.
    pub(super) fn next_request(&mut self) -> Option<Request> {
        let length = request_length(&self.unread)?;
        let is_held = subject(&self.unread).starts_with(b"/hold");
        self.unread.drain(..length);
        Some(Request { is_held })
    }

    /// Does with a request what `behaviour` says.
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
