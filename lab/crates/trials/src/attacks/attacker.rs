//! One hostile connection that speaks HTTP/1.1, or only a part of it.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use bywash_harness::tls::{self, MaybeTlsStream};
use bywash_harness::{client_socket, http, sys};

/// Bytes a second of a slow client: above the 500 that bywash requires, below all that is useful.
pub(super) const SLOW: u32 = 700;
/// A size that every program accepts and that no slow client ever reaches.
pub(super) const LARGE: usize = 10_000_000;
/// Bytes of a body that come at once: more than HAProxy (16 KB) and bywash (256 KiB) buffer.
pub(super) const FIRST: usize = 300_000;
/// Bytes of the answer that a slow reader asks for.
pub(super) const ANSWER: usize = 5_000_000;
/// The smallest receive buffer that the kernel grants.
const SMALL_BUFFER: i32 = 4096;
/// A handshake that takes longer is given up.
const HANDSHAKE: Duration = Duration::from_secs(2);

/// A hostile connection.
pub(super) trait Attacker {
    /// Does what is due once a period.
    ///
    /// # Errors
    /// The connection has ended, or has nothing left to do.
    fn act(&mut self) -> io::Result<()>;
}

/// What a connection sends and reads.
#[derive(Debug, Clone, Default)]
pub(super) struct Script {
    /// Sent once.
    pub(super) opening: Vec<u8>,
    /// Sent once a period.
    pub(super) drip: Vec<u8>,
    /// Bytes that are read in a period.
    pub(super) take: usize,
    /// An answer other than 200 ends the connection.
    pub(super) wants_200: bool,
    /// Any answer ends the connection: the request has been refused.
    pub(super) wants_silence: bool,
    /// The receive buffer is as small as possible.
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
    /// A POST whose large body comes slowly.
    pub(super) fn slow_upload() -> Self {
        let opening = http::post("/upload", &format!("Content-Length: {LARGE}\r\n")).into_bytes();
        let drip = vec![b'x'; SLOW as usize];
        Self { opening, drip, take: 1024, wants_silence: true, ..Self::default() }
    }

    /// The same, but more than any program buffers comes at once.
    pub(super) fn slow_rest_of_upload() -> Self {
        let upload = Self::slow_upload();
        Self { opening: [upload.opening, vec![b'x'; FIRST]].concat(), ..upload }
    }

    /// A GET whose large answer is read slowly.
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

    /// A GET, and then a connection without a request.
    pub(super) fn idle() -> Self {
        Self { opening: http::get("/item").into_bytes(), take: 4096, ..Self::default() }
    }
}

impl Scripted {
    /// Begins a connection without TLS.
    pub(super) fn open(source: Ipv4Addr, port: u16, script: &Arc<Script>) -> io::Result<Self> {
        let stream = client_socket::begin_connect(source, port)?;
        if script.small_buffer {
            sys::set_receive_buffer(&stream, SMALL_BUFFER)?;
        }
        Ok(Self::over(MaybeTlsStream::Clear(stream), script))
    }

    /// Opens a connection with TLS, whose handshake it completes.
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

    /// Sends the rest of the opening, or else the drip.
    fn send(&mut self) -> io::Result<()> {
        if let Some(rest) = self.script.opening.get(self.sent..).filter(|rest| !rest.is_empty()) {
            self.sent += ready(self.wire.write(rest))?.unwrap_or(0);
        } else if !self.script.drip.is_empty() {
            // What the socket does not take now was as slow as it could be.
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

/// A TLS connection whose client falls silent after its first message.
#[derive(Debug)]
pub(super) struct HalfHandshake {
    stream: TcpStream,
    hello: Vec<u8>,
}

impl HalfHandshake {
    /// Begins a connection.
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

/// `None` if the socket was not ready.
pub(super) fn ready(result: io::Result<usize>) -> io::Result<Option<usize>> {
    match result {
        Ok(count) => Ok(Some(count)),
        Err(e) => match e.kind() {
            ErrorKind::WouldBlock | ErrorKind::NotConnected | ErrorKind::Interrupted => Ok(None),
            _ => Err(e),
        },
    }
}
