//! One hostile HTTP/2 connection without TLS, with many streams that each make slow progress.
//!
//! A stream that ends is replaced in the next period. The connection obeys the protocol (windows,
//! replies to SETTINGS and PING), because a proxy would close a connection that breaks it.

use super::attacker::{ANSWER, Attacker, LARGE, ready};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpStream};

use bywash_harness::client_socket;
use bywash_harness::h2::{self, END_HEADERS, END_STREAM, Frame, Frames, Method, frame, kind};

/// The initial flow-control window of a connection, in bytes (RFC 9113 §6.9.2).
const WINDOW: u32 = 65_535;
/// The identifier of the setting `SETTINGS_INITIAL_WINDOW_SIZE`.
const INITIAL_WINDOW_SIZE: u16 = 4;
/// The number of bytes by which the client extends the connection's window. It is large enough for
/// all answers, so that only the windows of the streams limit them.
const CONNECTION_ROOM: u32 = 100_000_000;
const CANCEL: u32 = 8;

/// The action of each stream in a period.
#[derive(Debug, Clone, Copy)]
pub(super) enum Slow {
    /// The stream sends the given number of bytes of a large body.
    Upload(u32),
    /// The stream extends its window for a large answer by the given number of bytes.
    Read(u32),
}

/// A hostile HTTP/2 connection and its streams.
#[derive(Debug)]
pub(super) struct Streams {
    stream: TcpStream,
    frames: Frames,
    unsent: Vec<u8>,
    slow: Slow,
    /// Number of streams that the connection keeps open.
    wanted: usize,
    open: Vec<u32>,
    next: u32,
    /// Number of body bytes that the server's connection window still allows.
    window: u32,
}

impl Streams {
    /// Starts a connection from `source` to `port` with `wanted` streams.
    pub(super) fn open(source: Ipv4Addr, port: u16, slow: Slow, wanted: usize) -> io::Result<Self> {
        let settings = match slow {
            Slow::Upload(_) => Vec::new(),
            Slow::Read(_) => [&INITIAL_WINDOW_SIZE.to_be_bytes()[..], &[0; 4]].concat(),
        };
        let settings = frame(kind::SETTINGS, 0, 0, &settings);
        let room = frame(kind::WINDOW_UPDATE, 0, 0, &CONNECTION_ROOM.to_be_bytes());
        Ok(Self {
            stream: client_socket::begin_connect(source, port)?,
            frames: Frames::default(),
            unsent: [h2::PREFACE, &settings, &room].concat(),
            slow,
            wanted,
            open: Vec::new(),
            next: 1,
            window: WINDOW,
        })
    }

    fn receive(&mut self) -> io::Result<()> {
        let mut part = [0; 16384];
        while let Some(count) = ready(self.stream.read(&mut part))? {
            if count == 0 {
                return Err(ErrorKind::ConnectionAborted.into());
            }
            self.frames.extend(&part[..count]);
        }
        while let Some(frame) = self.frames.next() {
            self.take(&frame)?;
        }
        Ok(())
    }

    fn take(&mut self, got: &Frame) -> io::Result<()> {
        let is_answer = got.flags & 1 == 1;
        match got.kind {
            kind::SETTINGS if !is_answer => self.unsent.extend(frame(kind::SETTINGS, 1, 0, b"")),
            kind::PING if !is_answer => self.unsent.extend(frame(kind::PING, 1, 0, &got.payload)),
            kind::GOAWAY => return Err(ErrorKind::ConnectionAborted.into()),
            kind::WINDOW_UPDATE if got.stream == 0 => {
                let bytes = got.payload.get(..4).and_then(|four| four.try_into().ok());
                let more = bytes.map_or(0, u32::from_be_bytes);
                self.window = self.window.saturating_add(more);
            }
            kind::RST_STREAM => self.forget(got.stream),
            kind::HEADERS | kind::DATA if got.flags & END_STREAM != 0 => self.forget(got.stream),
            // An answer before the end of the body is a refusal. The stream is reset, and another
            // one replaces it.
            kind::HEADERS if matches!(self.slow, Slow::Upload(_)) => {
                let reset = frame(kind::RST_STREAM, 0, got.stream, &CANCEL.to_be_bytes());
                self.unsent.extend(reset);
                self.forget(got.stream);
            }
            _ => {}
        }
        Ok(())
    }

    fn forget(&mut self, stream: u32) {
        self.open.retain(|&open| open != stream);
    }

    fn begin_streams(&mut self) {
        while self.open.len() < self.wanted {
            let (flags, block) = match self.slow {
                Slow::Upload(_) => {
                    let length = h2::field("content-length", &LARGE.to_string());
                    (END_HEADERS, [h2::request(Method::Post, "/upload"), length].concat())
                }
                Slow::Read(_) => {
                    let path = format!("/bytes/{ANSWER}");
                    (END_HEADERS | END_STREAM, h2::request(Method::Get, &path))
                }
            };
            self.unsent.extend(frame(kind::HEADERS, flags, self.next, &block));
            self.open.push(self.next);
            self.next += 2;
        }
    }

    fn move_streams(&mut self) {
        for &stream in &self.open {
            match self.slow {
                Slow::Upload(bytes) if self.window >= bytes => {
                    self.window -= bytes;
                    self.unsent.extend(frame(kind::DATA, 0, stream, &vec![b'x'; bytes as usize]));
                }
                Slow::Upload(_) => {}
                Slow::Read(bytes) => {
                    let more = frame(kind::WINDOW_UPDATE, 0, stream, &bytes.to_be_bytes());
                    self.unsent.extend(more);
                }
            }
        }
    }
}

impl Attacker for Streams {
    fn act(&mut self) -> io::Result<()> {
        self.receive()?;
        // This condition limits the queued bytes if the peer does not read.
        if self.unsent.len() < WINDOW as usize {
            self.begin_streams();
            self.move_streams();
        }
        if let Some(count) = ready(self.stream.write(&self.unsent))? {
            self.unsent.drain(..count);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn a_refused_stream_is_replaced_and_a_body_keeps_to_the_window() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let mut client = Streams::open(Ipv4Addr::LOCALHOST, port, Slow::Upload(16_000), 2).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        client.act().unwrap();
        assert_eq!(client.open, [1, 3]);
        server.write_all(&frame(kind::HEADERS, END_HEADERS | END_STREAM, 1, b"\x88")).unwrap();
        while client.next < 7 {
            client.act().unwrap();
        }
        assert_eq!(client.open, [3, 5]);
        for _ in 0..10 {
            client.act().unwrap();
        }
        assert!(client.window < 16_000);
    }
}
