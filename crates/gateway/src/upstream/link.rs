//! One connection to the upstream, driven by the request that uses it.
//!
//! hyper splits a connection into a handle and a future that does the reading and writing. Here
//! the request polls that future itself instead of leaving it to a task: so the connection is
//! closed in the very moment in which the request is dropped, and no second task is woken for
//! every packet.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Waker};

use http::{Request, Response};
use hyper::body::Incoming;
use hyper::client::conn::http1::{Connection, SendRequest, handshake};
use tokio::net::TcpStream;

use super::UpstreamError;
use super::io::UpstreamIo;
use crate::request::Upload;

pub(crate) struct Link {
    sender: SendRequest<Upload>,
    io: Pin<Box<Connection<UpstreamIo, Upload>>>,
    /// The future has ended and must not be polled again.
    closed: bool,
}

/// A request that got no answer.
pub(crate) struct SendError {
    pub(crate) error: UpstreamError,
    /// The request itself, if not one byte of it was sent.
    pub(crate) unsent: Option<Request<Upload>>,
}

impl Link {
    pub(crate) async fn new(stream: TcpStream) -> Result<Self, UpstreamError> {
        let (sender, io) =
            handshake(UpstreamIo::new(stream)).await.map_err(UpstreamError::from_hyper)?;
        Ok(Self { sender, io: Box::pin(io), closed: false })
    }

    /// Sends a request and waits for the head of its answer.
    pub(crate) async fn exchange(
        &mut self,
        request: Request<Upload>,
    ) -> Result<Response<Incoming>, Box<SendError>> {
        let mut answer = std::pin::pin!(self.sender.try_send_request(request));
        let (io, closed) = (&mut self.io, &mut self.closed);
        let result = poll_fn(|cx| {
            if !*closed {
                *closed = io.as_mut().poll(cx).is_ready();
            }
            answer.as_mut().poll(cx)
        });
        result.await.map_err(|mut failed| {
            let unsent = failed.take_message();
            Box::new(SendError { error: UpstreamError::from_hyper(failed.into_error()), unsent })
        })
    }

    /// Lets the connection read and write.
    pub(crate) fn poll_io(&mut self, cx: &mut Context<'_>) {
        if !self.closed {
            self.closed = self.io.as_mut().poll(cx).is_ready();
        }
    }

    /// Whether it could carry another exchange, as far as can be known without trying.
    pub(crate) fn is_idle(&mut self) -> bool {
        self.poll_io(&mut Context::from_waker(Waker::noop()));
        !self.closed && self.sender.is_ready()
    }
}
