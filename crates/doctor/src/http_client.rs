//! A small HTTP/1.1 client for the active tests. It times its steps and leaves on demand: dropping
//! a [`Connection`] closes the connection. It has no time limits of its own; the caller sets them.

use std::io;
use std::time::{Duration, Instant};

use bywash_config::{Endpoint, Scheme, Server};
use bywash_message::{Decoder, Fields, Framing, Head, Limits, Part, Response, write_request};
use bywash_tls::Connector;
use http::Method;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream, lookup_host};

pub(super) const LIMITS: Limits = Limits { target: 8192, fields: 100, bytes: 16 * 1024 };

/// A byte stream in both directions.
trait ByteStream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> ByteStream for T {}

/// A connection to a server.
pub(super) struct Connection {
    stream: Box<dyn ByteStream>,
    input: Vec<u8>,
}

/// The durations of the steps to a connection.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Steps {
    /// The time from the name to an address.
    pub(super) lookup: Duration,
    pub(super) connect: Duration,
    pub(super) tls: Option<Duration>,
}

/// Connects as the gateway does; `tls` is for a server that is reached by `https`.
pub(super) async fn dial(
    server: &Server,
    tls: Option<&Connector>,
) -> io::Result<(Connection, Steps)> {
    let mut steps = Steps::default();
    let begun = Instant::now();
    let (host, port) = match &server.endpoint {
        Endpoint::Unix(path) => {
            let stream = UnixStream::connect(path).await?;
            steps.connect = begun.elapsed();
            return Ok((Connection::new(stream), steps));
        }
        Endpoint::Tcp { host, port } => (host.as_str(), *port),
    };
    let addresses: Vec<_> = lookup_host((host, port)).await?.collect();
    steps.lookup = begun.elapsed();
    let stream = TcpStream::connect(&*addresses).await?;
    steps.connect = begun.elapsed().saturating_sub(steps.lookup);
    let _ = stream.set_nodelay(true);
    match (server.scheme, tls) {
        (Scheme::Http | Scheme::H2c, _) => Ok((Connection::new(stream), steps)),
        (Scheme::Https, None) => {
            Err(io::Error::other("TLS cannot be set up; see the findings about certificates"))
        }
        (Scheme::Https, Some(tls)) => {
            let before = begun.elapsed();
            let stream = tls.connect(host, stream).await?;
            steps.tls = Some(begun.elapsed().saturating_sub(before));
            Ok((Connection::new(stream), steps))
        }
    }
}

impl Connection {
    fn new(stream: impl ByteStream + 'static) -> Self {
        Self { stream: Box::new(stream), input: Vec::new() }
    }

    /// Sends a whole request.
    pub(super) async fn ask(
        &mut self,
        method: &Method,
        target: &str,
        fields: &Fields,
        body: &[u8],
    ) -> io::Result<()> {
        let framing = match body.len() {
            0 => Framing::None,
            length => Framing::Length(length as u64),
        };
        let mut bytes = Vec::new();
        write_request(&mut bytes, method, target, fields, framing);
        bytes.extend_from_slice(body);
        self.stream.write_all(&bytes).await?;
        self.stream.flush().await
    }

    /// Reads the head of the answer to a request with this method.
    pub(super) async fn head(&mut self, asked: &Method) -> io::Result<Response> {
        let mut head = Head::default();
        loop {
            let Some(end) = head.end(&self.input, &LIMITS).map_err(|_| strange())? else {
                self.more().await?;
                continue;
            };
            let response =
                Response::parse(&self.input[..end], asked, &LIMITS).map_err(|_| strange())?;
            self.input.drain(..end);
            if !response.status.is_informational() {
                return Ok(response);
            }
            head = Head::default();
        }
    }

    /// Reads the whole answer and discards its body.
    pub(super) async fn answer(&mut self, asked: &Method) -> io::Result<Response> {
        let response = self.head(asked).await?;
        let mut decoder = Decoder::new(response.framing, &LIMITS);
        loop {
            let (used, part) = decoder.decode(&self.input).map_err(|_| strange())?;
            match part {
                Part::End(_) => return Ok(response),
                Part::Data(_) => drop(self.input.drain(..used)),
                Part::More => {
                    self.input.drain(..used);
                    if self.more().await.is_err() {
                        return decoder.closed().map(|()| response).map_err(|_| ended());
                    }
                }
            }
        }
    }

    async fn more(&mut self) -> io::Result<()> {
        match self.stream.read_buf(&mut self.input).await? {
            0 => Err(ended()),
            _ => Ok(()),
        }
    }
}

fn strange() -> io::Error {
    io::Error::other("it does not answer in HTTP/1")
}

fn ended() -> io::Error {
    io::Error::other("it closed the connection before its answer was complete")
}

/// Formats a duration for people: in tenths of a millisecond, and from one second on in hundredths
/// of a second.
pub(super) fn shown(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    if seconds < 1.0 { format!("{:.1} ms", seconds * 1e3) } else { format!("{seconds:.2} s") }
}

/// Returns milliseconds with three decimals, for programs.
pub(super) fn millis(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e6).round() / 1e3
}
