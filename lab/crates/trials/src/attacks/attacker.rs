//! Hostile connections that speak HTTP/1.1, or only part of it.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use bywash_harness::tls::{self, MaybeTlsStream};
use bywash_harness::{client_socket, http, sys};

/// The rate of a slow client in bytes per second. It is above the 500 bytes per second that bywash
/// requires, but too low to be useful.
pub(super) const SLOW: u32 = 700;
/// The size in bytes of a request body that every program accepts and that no slow client ever
/// completes.
pub(super) const LARGE: usize = 10_000_000;
/// The number of bytes of a body that are sent at once. It is more than HAProxy (16 KB) and bywash
/// (256 KiB) buffer.
pub(super) const FIRST: usize = 300_000;
/// The size in bytes of the answer that a slow reader requests.
pub(super) const ANSWER: usize = 5_000_000;
/// The smallest receive buffer that the kernel allows, in bytes.
const SMALL_BUFFER: i32 = 4096;
/// Time limit of a TLS handshake.
const HANDSHAKE: Duration = Duration::from_secs(2);

/// A hostile connection whose work is done in periods of equal length.
pub(super) trait Attacker {
    /// Does the work of one period.
    ///
    /// # Errors
    ///
    /// Returns an error if the connection has ended or has nothing left to do.
    fn act(&mut self) -> io::Result<()>;
}

/// The bytes that a hostile connection sends, and the way in which it reads.
#[derive(Debug, Clone, Default)]
pub(super) struct Script {
    /// Bytes sent once, at the start of the connection.
    pub(super) opening: Vec<u8>,
    /// Bytes sent in every period after the opening.
    pub(super) drip: Vec<u8>,
    /// Maximum number of bytes read in a period.
    pub(super) take: usize,
    /// Whether an answer with a status other than 200 ends the connection.
    pub(super) wants_200: bool,
    /// Whether any answer ends the connection. For a script that expects no answer, an answer means
    /// a refusal.
    pub(super) wants_silence: bool,
    /// Whether the socket's receive buffer is as small as the kernel allows.
    pub(super) small_buffer: bool,
}

/// A connection that follows a [`Script`].
#[derive(Debug)]
pub(super) struct Scripted {
    wire: MaybeTlsStream,
    script: Arc<Script>,
    sent: usize,
    has_read: bool,
}

impl Script {
    /// Returns the script of a POST whose large body is sent slowly.
    pub(super) fn slow_upload() -> Self {
        let opening = http::post("/upload", &format!("Content-Length: {LARGE}\r\n")).into_bytes();
        let drip = vec![b'x'; SLOW as usize];
        Self { opening, drip, take: 1024, wants_silence: true, ..Self::default() }
    }

    /// Returns the script of a POST that sends more of its body at once than any program buffers,
    /// then the rest slowly.
    pub(super) fn slow_rest_of_upload() -> Self {
        let upload = Self::slow_upload();
        Self { opening: [upload.opening, vec![b'x'; FIRST]].concat(), ..upload }
    }

    /// Returns the script of a GET whose large answer is read slowly.
    pub(super) fn slow_read() -> Self {
        let opening = http::get(&format!("/bytes/{ANSWER}")).into_bytes();
        Self {
            opening,
            take: SLOW as usize,
            wants_200: true,
            small_buffer: true,
            ..Self::default()
        }
    }

    /// Returns the script of a GET after which the connection stays idle.
    pub(super) fn idle() -> Self {
        Self { opening: http::get("/item").into_bytes(), take: 4096, ..Self::default() }
    }
}

impl Scripted {
    /// Starts a connection without TLS from `source` to `port`, without waiting for the connect.
    pub(super) fn open(source: Ipv4Addr, port: u16, script: &Arc<Script>) -> io::Result<Self> {
        let stream = client_socket::begin_connect(source, port)?;
        if script.small_buffer {
            sys::set_receive_buffer(&stream, SMALL_BUFFER)?;
        }
        Ok(Self::over(MaybeTlsStream::Clear(stream), script))
    }

    /// Opens a connection with TLS from `source` to `port`, and completes the handshake.
    pub(super) fn open_tls(
        source: Ipv4Addr,
        port: u16,
        script: &Arc<Script>,
        client: &tls::Client,
    ) -> io::Result<Self> {
        let stream = client_socket::connect_from(source, port)?;
        if script.small_buffer {
            sys::set_receive_buffer(&stream, SMALL_BUFFER)?;
        }
        stream.set_read_timeout(Some(HANDSHAKE))?;
        let stream = client.connect(stream)?;
        stream.sock.set_nonblocking(true)?;
        Ok(Self::over(MaybeTlsStream::Tls(Box::new(stream)), script))
    }

    fn over(wire: MaybeTlsStream, script: &Arc<Script>) -> Self {
        Self { wire, script: Arc::clone(script), sent: 0, has_read: false }
    }

    /// Sends the rest of the opening. If the opening was sent before, sends the bytes of one
    /// period.
    fn send(&mut self) -> io::Result<()> {
        if let Some(rest) = self.script.opening.get(self.sent..).filter(|rest| !rest.is_empty()) {
            self.sent += ready(self.wire.write(rest))?.unwrap_or(0);
        } else if !self.script.drip.is_empty() {
            // Bytes that the socket does not accept now are dropped, because the upload is slow
            // anyway.
            ready(self.wire.write(&self.script.drip))?;
        }
        Ok(())
    }

    fn read(&mut self) -> io::Result<()> {
        let mut part = vec![0; self.script.take];
        let Some(count) = ready(self.wire.read(&mut part))? else { return Ok(()) };
        let is_first = !std::mem::replace(&mut self.has_read, true);
        let is_200 = part.starts_with(b"HTTP/1.1 200 ");
        let ends = count == 0
            || self.script.wants_silence
            || (self.script.wants_200 && is_first && !is_200);
        if ends { Err(ErrorKind::ConnectionAborted.into()) } else { Ok(()) }
    }
}

impl Attacker for Scripted {
    fn act(&mut self) -> io::Result<()> {
        self.send()?;
        if self.script.take > 0 { self.read() } else { Ok(()) }
    }
}

/// A TLS connection whose client sends nothing after its `ClientHello`.
#[derive(Debug)]
pub(super) struct HalfHandshake {
    stream: TcpStream,
    hello: Vec<u8>,
}

impl HalfHandshake {
    /// Starts a connection from `source` to `port`, and sends the `ClientHello`.
    pub(super) fn open(source: Ipv4Addr, port: u16, client: &tls::Client) -> io::Result<Self> {
        let stream = client_socket::begin_connect(source, port)?;
        Ok(Self { stream, hello: client.hello()? })
    }
}

impl Attacker for HalfHandshake {
    fn act(&mut self) -> io::Result<()> {
        if let Some(count) = ready(self.stream.write(&self.hello))? {
            self.hello.drain(..count.min(self.hello.len()));
        }
        match ready(self.stream.read(&mut [0; 4096]))? {
            Some(0) => Err(ErrorKind::ConnectionAborted.into()),
            Some(_) | None => Ok(()),
        }
    }
}

/// Maps "not ready" errors to `Ok(None)`, and returns all other results unchanged.
pub(super) fn ready(result: io::Result<usize>) -> io::Result<Option<usize>> {
    match result {
        Ok(count) => Ok(Some(count)),
        Err(e) => match e.kind() {
            ErrorKind::WouldBlock | ErrorKind::NotConnected | ErrorKind::Interrupted => Ok(None),
            _ => Err(e),
        },
    }
}
