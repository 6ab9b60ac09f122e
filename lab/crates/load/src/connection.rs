//! One keep-alive HTTP/1.1 connection, and a request over it.
//!
//! The connection has no task of its own. The task that owns the connection also moves its bytes
//! (see [`Connection::drive`]). Dropping the connection therefore closes the socket immediately,
//! and no task can be left behind that still holds the socket.

use std::future::{Future, poll_fn};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::{Pin, pin};
use std::task::Poll;

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::net::{TcpSocket, TcpStream};

use crate::request::HttpRequest;

/// The maximum number of bytes of an answer's head. It is small because a run has many connections,
/// and no healthy site sends a larger head.
const BUFFER: usize = 64 * 1024;

type Driver = http1::Connection<TokioIo<TcpStream>, Full<Bytes>>;

/// A connection to the site, which is closed when the value is dropped.
pub(crate) struct Connection {
    sender: SendRequest<Full<Bytes>>,
    /// The task that moves the connection's bytes; `None` after either side has closed the
    /// connection.
    driver: Option<Driver>,
}

/// An answer of the site that was read to its end.
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    /// Whether the whole body arrived. It did not if the connection broke in the body.
    pub(crate) whole: bool,
    /// The connection, for the next request; `None` if either side has closed it.
    pub(crate) connection: Option<Connection>,
}

/// The reason why a request has no answer.
pub(crate) enum RequestError {
    /// The connection was closed before the request was sent; the request is returned.
    Unsent(Box<HttpRequest>),
    /// The connection broke after the request was sent, or could not be opened.
    Lost,
    /// The client's machine has no descriptor or port left, which is not the site's fault.
    Exhausted,
}

/// Sends one request, over the connection `kept` if it is still usable, otherwise over a new one.
///
/// If the connection breaks after the request was sent, the request is not repeated, because the
/// site may have acted upon it.
pub(crate) async fn send(
    kept: Option<Connection>,
    endpoints: Endpoints,
    request: HttpRequest,
) -> Result<Answer, RequestError> {
    let request = match kept {
        Some(connection) => match connection.exchange(request).await {
            Err(RequestError::Unsent(request)) => *request,
            ended => return ended,
        },
        None => request,
    };
    Connection::open(endpoints).await?.exchange(request).await
}

/// The source and the destination address of a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Endpoints {
    pub(crate) from: Option<IpAddr>,
    pub(crate) to: SocketAddr,
}

impl Endpoints {
    async fn connect(self) -> io::Result<TcpStream> {
        let Some(from) = self.from else { return TcpStream::connect(self.to).await };
        let socket = TcpSocket::new_v4()?;
        socket.bind(SocketAddr::new(from, 0))?;
        socket.connect(self.to).await
    }
}

impl Connection {
    async fn open(endpoints: Endpoints) -> Result<Self, RequestError> {
        let stream = endpoints.connect().await.map_err(|error| classify_error(&error))?;
        // A request is one small write, and Nagle's delay would distort the measurement.
        stream.set_nodelay(true).map_err(|error| classify_error(&error))?;
        let (sender, driver) = http1::Builder::new()
            .max_buf_size(BUFFER)
            .handshake(TokioIo::new(stream))
            .await
            .map_err(|_| RequestError::Lost)?;
        Ok(Self { sender, driver: Some(driver) })
    }

    async fn exchange(mut self, request: HttpRequest) -> Result<Answer, RequestError> {
        let ready = drive(&mut self.driver, self.sender.ready()).await;
        if ready.is_err() {
            return Err(RequestError::Unsent(Box::new(request)));
        }
        let sent = self.sender.try_send_request(request);
        let (head, body) = match drive(&mut self.driver, sent).await {
            Ok(answer) => answer.into_parts(),
            Err(mut error) => return Err(error.take_message().map_or(RequestError::Lost, unsent)),
        };
        let whole = self.drive(drain_body(body)).await;
        Ok(Answer {
            status: head.status,
            headers: head.headers,
            whole,
            connection: (whole && self.is_open()).then_some(self),
        })
    }

    /// Runs `task` to its end and moves the connection's bytes meanwhile. If the site closes the
    /// connection, closes this side too.
    pub(crate) async fn drive<T>(&mut self, task: impl Future<Output = T>) -> T {
        drive(&mut self.driver, task).await
    }

    /// Returns whether neither side had closed the connection when it was last driven.
    pub(crate) fn is_open(&self) -> bool {
        self.driver.is_some()
    }
}

/// Implements [`Connection::drive`] for a task that borrows the other half of the connection.
async fn drive<T>(driver: &mut Option<Driver>, task: impl Future<Output = T>) -> T {
    let mut task = pin!(task);
    poll_fn(|context| {
        if let Poll::Ready(done) = task.as_mut().poll(context) {
            return Poll::Ready(done);
        }
        // The task is woken when its connection ends, because it holds the receiving end of the
        // channel for the answer.
        if let Some(running) = driver
            && Pin::new(running).poll(context).is_ready()
        {
            *driver = None;
        }
        Poll::Pending
    })
    .await
}

/// Reads a body to its end and discards it. Returns whether the end of the body arrived.
async fn drain_body(mut body: Incoming) -> bool {
    while let Some(frame) = body.frame().await {
        if frame.is_err() {
            return false;
        }
    }
    true
}

fn unsent(request: HttpRequest) -> RequestError {
    RequestError::Unsent(Box::new(request))
}

/// Returns the error of a failed connect: [`RequestError::Exhausted`] if this machine lacks a
/// descriptor or a port, else [`RequestError::Lost`].
fn classify_error(error: &io::Error) -> RequestError {
    // The numbers are those of ENFILE and EMFILE, for which the standard library has no name.
    let no_descriptor = matches!(error.raw_os_error(), Some(23 | 24));
    if no_descriptor || error.kind() == io::ErrorKind::AddrNotAvailable {
        RequestError::Exhausted
    } else {
        RequestError::Lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_machines_own_shortage_is_no_fault_of_the_site() {
        for (errno, ours) in [(23, true), (24, true), (104, false)] {
            let broken = classify_error(&io::Error::from_raw_os_error(errno));
            assert_eq!(matches!(broken, RequestError::Exhausted), ours, "{errno}");
        }
        assert!(matches!(
            classify_error(&io::ErrorKind::AddrNotAvailable.into()),
            RequestError::Exhausted
        ));
        assert!(matches!(
            classify_error(&io::ErrorKind::ConnectionRefused.into()),
            RequestError::Lost
        ));
    }
}
