//! Hostile connections, each of which makes a gateway hold memory.

use std::fmt;
use std::io::{self, ErrorKind, Write};
use std::net::TcpStream;
use std::time::Duration;

use bywash_harness::client_socket;
use bywash_harness::h2::{self, END_HEADERS, Method, frame, kind};
use bywash_harness::http;
use bywash_harness::tls;

/// The way in which the client of a connection has made the gateway hold memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ConnectionKind {
    /// The client sends nothing.
    Silent,
    /// The client sends 200 bytes of a request head.
    Half,
    /// The client sends 15 KB of a request head.
    HalfLarge,
    /// The client sends 300 KB of a body of 10 MB while the queue is full, and its request is
    /// refused.
    Refused,
    /// The client sends 300 KB of a body of 10 MB, and its request waits for a slot.
    Waiting,
    /// The client has sent the first chunks of a body, which have reached the upstream.
    Chunks,
    /// The client has received an answer and keeps the connection.
    Idle,
    /// The client has received an answer to a POST of 60 KB and keeps the connection.
    IdlePost,
    /// The client has opened an HTTP/2 connection and sends no request.
    Http2,
    /// The client has sent the beginnings of 20 bodies of 60 KB with HTTP/2.
    Http2Bodies,
    /// The client has begun a TLS handshake and sends nothing more.
    TlsSilent,
    /// The client has received an answer over TLS and keeps the connection.
    TlsIdle,
    /// The client's request is running and holds a slot.
    Holder,
}

impl ConnectionKind {
    pub(super) const ALL: [Self; 12] = [
        Self::Silent,
        Self::Half,
        Self::HalfLarge,
        Self::Refused,
        Self::Waiting,
        Self::Chunks,
        Self::Idle,
        Self::IdlePost,
        Self::Http2,
        Self::Http2Bodies,
        Self::TlsSilent,
        Self::TlsIdle,
    ];
    pub(super) fn is_tls(self) -> bool {
        matches!(self, Self::TlsSilent | Self::TlsIdle)
    }

    /// Returns whether a request of this kind must reach the upstream, and so needs a slot.
    pub(super) fn needs_slot(self) -> bool {
        matches!(self, Self::Idle | Self::IdlePost | Self::TlsIdle | Self::Chunks)
    }
}

impl fmt::Display for ConnectionKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Silent => "silent",
            Self::Half => "half a head",
            Self::HalfLarge => "half a head of 15 KB",
            Self::Refused => "refused body",
            Self::Waiting => "waiting body",
            Self::Chunks => "open chunks",
            Self::Idle => "idle",
            Self::IdlePost => "idle after a body",
            Self::Http2 => "HTTP/2",
            Self::Http2Bodies => "HTTP/2, 20 bodies",
            Self::TlsSilent => "TLS, half a handshake",
            Self::TlsIdle => "TLS, idle",
            Self::Holder => "holder",
        })
    }
}

/// An open hostile connection.
pub(super) struct Hostile {
    _wire: tls::MaybeTlsStream,
}

/// Time limit for an answer to the client.
const BOUND: Duration = Duration::from_secs(10);
/// Number of connections from each source address.
const EACH: usize = 200;

impl Hostile {
    /// Opens connection number `n`, of the kind `what`, and sends its bytes. Fails if an answer
    /// that this kind needs does not arrive.
    pub(super) fn open(what: ConnectionKind, n: usize, port: u16) -> io::Result<Self> {
        let mut stream = client_socket::connect_from(client_socket::address(n / EACH), port)?;
        stream.set_read_timeout(Some(BOUND))?;
        if what == ConnectionKind::TlsIdle {
            let mut wire = tls::MaybeTlsStream::Tls(Box::new(tls::Client::new()?.connect(stream)?));
            wire.write_all(http::get("/item").as_bytes())?;
            http::expect_200(&mut wire)?;
            return Ok(Self { _wire: wire });
        }
        match what {
            ConnectionKind::Silent | ConnectionKind::TlsIdle => {}
            // The first bytes of a TLS record whose length is 500 bytes.
            ConnectionKind::TlsSilent => stream.write_all(&[22, 3, 1, 1, 244, 1, 0, 1])?,
            ConnectionKind::Half => stream.write_all(&head("POST /x", "X-Half: ", 200))?,
            ConnectionKind::HalfLarge => stream.write_all(&head("GET /x", "X-Half: ", 15_000))?,
            ConnectionKind::Idle => {
                stream.write_all(http::get("/item").as_bytes())?;
                http::expect_200(&mut stream)?;
            }
            ConnectionKind::IdlePost => {
                stream.write_all(http::post("/item", "Content-Length: 60000\r\n").as_bytes())?;
                stream.write_all(&vec![b'a'; 60_000])?;
                http::expect_200(&mut stream)?;
            }
            ConnectionKind::Holder => stream.write_all(http::get("/hold").as_bytes())?,
            ConnectionKind::Refused | ConnectionKind::Waiting => {
                let head = http::post("/x", "Content-Length: 10000000\r\n");
                fill(&mut stream, &[head.as_bytes(), &vec![b'a'; 300_000]].concat())?;
            }
            ConnectionKind::Chunks => {
                let head = http::post("/x", "Transfer-Encoding: chunked\r\n");
                let chunk = [b"4000\r\n".as_slice(), &[b'a'; 0x4000], b"\r\n"].concat();
                fill(&mut stream, &[head.as_bytes(), &chunk, b"FFFFF\r\naaaa"].concat())?;
            }
            ConnectionKind::Http2 => stream.write_all(&hello())?,
            ConnectionKind::Http2Bodies => fill(&mut stream, &bodies(20, 60_000))?,
        }
        stream.set_nonblocking(true)?;
        Ok(Self { _wire: tls::MaybeTlsStream::Clear(stream) })
    }
}

fn head(line: &str, field: &str, bytes: usize) -> Vec<u8> {
    let mut head = format!("{line} HTTP/1.1\r\nHost: bench.test\r\n{field}").into_bytes();
    head.resize(bytes, b'a');
    head
}

/// Sends as many bytes as the gateway accepts, and stops when it no longer reads.
fn fill(stream: &mut TcpStream, mut bytes: &[u8]) -> io::Result<()> {
    stream.set_nonblocking(true)?;
    let mut pauses = 0;
    while !bytes.is_empty() {
        match stream.write(bytes) {
            Ok(sent) => bytes = &bytes[sent..],
            // The gateway may need a moment to read. If it still does not read after two pauses,
            // sending stops.
            Err(e) if e.kind() == ErrorKind::WouldBlock && pauses < 2 => {
                pauses += 1;
                std::thread::sleep(Duration::from_millis(1));
            }
            Err(e) if e.kind() == ErrorKind::WouldBlock => break,
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

fn hello() -> Vec<u8> {
    [h2::PREFACE, &frame(kind::SETTINGS, 0, 0, b"")].concat()
}

fn bodies(streams: u32, bytes: usize) -> Vec<u8> {
    let mut all = hello();
    for number in 0..streams {
        let stream = 2 * number + 1;
        all.extend(frame(kind::HEADERS, END_HEADERS, stream, &h2::request(Method::Post, "/x")));
        for part in vec![b'a'; bytes].chunks(16_000) {
            all.extend(frame(kind::DATA, 0, stream, part));
        }
    }
    all
}
