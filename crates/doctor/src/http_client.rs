//! A small HTTP/1.1 client for the active tests. It measures the duration of each step, and can
//! leave at any time: dropping a [`Connection`] closes the connection. It has no time limits of its
//! own; the caller sets them.

use std::io;
use std::time::{Duration, Instant};

use bywash_client::{Answer, asynchronous, request};
use bywash_config::{Endpoint, Scheme, Server};
use bywash_message::{Fields, Limits, Response};
use bywash_tls::Connector;
use http::Method;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream, lookup_host};

pub(super) const LIMITS: Limits = Limits { target: 8192, fields: 100, bytes: 16 * 1024 };

/// The maximum number of bytes of a body that are held before they are discarded. It exceeds the
/// size of two reads.
const PART: usize = 64 * 1024;

/// A byte stream in both directions.
trait ByteStream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> ByteStream for T {}

/// A connection to a server, for one request at a time.
pub(super) struct Connection {
    stream: Box<dyn ByteStream>,
    answer: Answer,
}

/// The durations of the steps of opening a connection.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Steps {
    pub(super) lookup: Duration,
    pub(super) connect: Duration,
    pub(super) tls: Option<Duration>,
}

/// Opens a connection as the gateway does, and returns the durations of the steps. `tls` is used
/// for a server that is reached by `https`.
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
        Self { stream: Box::new(stream), answer: Answer::new(Method::GET, LIMITS, PART) }
    }

    /// Sends a whole request on the connection.
    pub(super) async fn ask(
        &mut self,
        method: &Method,
        target: &str,
        fields: &Fields,
        body: &[u8],
    ) -> io::Result<()> {
        self.answer = Answer::new(method.clone(), LIMITS, PART);
        self.stream.write_all(&request(method, target, fields, body)).await?;
        self.stream.flush().await
    }

    /// Reads the head of the answer.
    pub(super) async fn head(&mut self) -> io::Result<Response> {
        asynchronous::head(&mut self.stream, &mut self.answer).await
    }

    /// Reads the whole answer, discards its body, and returns its head.
    pub(super) async fn answer(&mut self) -> io::Result<Response> {
        let response = self.head().await?;
        while !self.answer.has_ended() {
            self.answer.body.clear();
            let received = asynchronous::receive(&mut self.stream, &mut self.answer).await;
            // A body without a length ends with the connection, also if that ends with an error.
            if let Err(error) = received
                && self.answer.feed(&[]).is_err()
            {
                return Err(error);
            }
        }
        Ok(response)
    }
}

/// Formats a duration for people: below one second in tenths of a millisecond, otherwise in
/// hundredths of a second.
pub(super) fn shown(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    if seconds < 1.0 { format!("{:.1} ms", seconds * 1e3) } else { format!("{seconds:.2} s") }
}

/// Returns a duration in milliseconds, rounded to three decimals, for machine-readable output.
pub(super) fn millis(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e6).round() / 1e3
}
