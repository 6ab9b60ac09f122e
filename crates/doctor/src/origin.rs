//! The doctor's own origin, to which the hop in front leads for the test.
//!
//! The origin holds requests that carry the doctor's token, until the test answers them or their
//! connection closes. Any other request gets a short answer at once, so that the hop's health
//! checks succeed.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bywash_message::{Fields, Framing, Head, Request, write_response};
use http::StatusCode;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, mpsc};
use tokio::time::timeout;

use super::http_client::LIMITS;

/// The header field with the token. Hops forward unknown fields.
pub(super) const TOKEN: &str = "Doctor-Token";

/// The maximum number of open connections. A hop opens one for each request of the test, and some
/// more for its own purposes.
const MOST: usize = 64;

/// The maximum time for the head of a request to arrive, and for an answer to be written.
const PATIENCE: Duration = Duration::from_secs(5);

pub(super) struct Origin {
    held: mpsc::Receiver<HeldRequest>,
}

/// A request of the test that waits for its answer.
pub(super) struct HeldRequest {
    stream: TcpStream,
    pub(super) request: Request,
    /// The address from which the hop connected.
    pub(super) peer: SocketAddr,
}

impl Origin {
    /// Starts to listen on `address`, for requests with this token. The origin listens as long as
    /// the runtime runs.
    pub(super) async fn listen(address: SocketAddr, token: &str) -> io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let (keep, held) = mpsc::channel(MOST);
        tokio::spawn(accept(listener, Arc::from(token), keep));
        Ok(Self { held })
    }

    /// Waits for the next request of the test, and returns it.
    pub(super) async fn next_request(&mut self) -> HeldRequest {
        match self.held.recv().await {
            Some(held) => held,
            // The task that accepts connections has ended, so no request will come.
            None => std::future::pending().await,
        }
    }
}

async fn accept(listener: TcpListener, token: Arc<str>, keep: mpsc::Sender<HeldRequest>) {
    let permits = Arc::new(Semaphore::new(MOST));
    loop {
        let Ok(permit) = Arc::clone(&permits).acquire_owned().await else { return };
        let Ok((stream, peer)) = listener.accept().await else {
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        let (token, keep) = (Arc::clone(&token), keep.clone());
        tokio::spawn(async move {
            if let Ok(Ok(came)) = timeout(PATIENCE, take(stream, peer)).await {
                let ours = came.request.fields.named(TOKEN.as_bytes()).next();
                if ours == Some(token.as_bytes()) {
                    let _ = keep.send(came).await;
                } else {
                    came.answer().await;
                }
            }
            drop(permit);
        });
    }
}

/// Reads the head of a request. Bytes after the head are ignored.
async fn take(mut stream: TcpStream, peer: SocketAddr) -> io::Result<HeldRequest> {
    let (mut input, mut head) = (Vec::new(), Head::default());
    loop {
        let fault = |_| io::Error::from(io::ErrorKind::InvalidData);
        if let Some(end) = head.end(&input, &LIMITS).map_err(fault)? {
            let request = Request::parse(&input[..end], &LIMITS).map_err(fault)?;
            return Ok(HeldRequest { stream, request, peer });
        }
        if stream.read_buf(&mut input).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
}

impl HeldRequest {
    /// Answers the request with a short text, and closes the connection.
    pub(super) async fn answer(mut self) {
        let (mut bytes, mut fields) = (Vec::new(), Fields::new());
        fields.push(b"Cache-Control", b"no-store");
        let body = b"bywash doctor\n";
        let framing = Framing::Length(body.len() as u64);
        write_response(&mut bytes, StatusCode::OK, b"", &fields, framing, Some("close"));
        bytes.extend_from_slice(body);
        // If the hop has already left, it needs no answer.
        let _ = timeout(PATIENCE, self.stream.write_all(&bytes)).await;
        let _ = self.stream.shutdown().await;
    }

    /// Waits until the hop closes its connection, for at most `limit`. Returns how long that took;
    /// `None` if the hop has not closed.
    pub(super) async fn wait_for_close(&mut self, limit: Duration) -> Option<Duration> {
        let begun = Instant::now();
        let mut unread = [0; 4096];
        let closed = async {
            // A read error is a reset of the connection, so the hop has closed as well.
            while self.stream.read(&mut unread).await.is_ok_and(|read| read > 0) {}
            begun.elapsed()
        };
        timeout(limit, closed).await.ok()
    }
}
