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
use hyper::client::conn::http1::{Builder, Connection, SendRequest};
use tokio::net::TcpStream;

use super::UpstreamError;
use super::io::UpstreamIo;
use crate::request::Upload;

pub(crate) struct Link {
    sender: SendRequest<Upload>,
    /// `None` once it has ended: what hyper still holds of a request goes with it.
    io: Option<Pin<Box<Connection<UpstreamIo, Upload>>>>,
}

/// A request that got no answer.
pub(crate) struct SendError {
    pub(crate) error: UpstreamError,
    /// The request itself, if not one byte of it was sent.
    pub(crate) unsent: Option<Request<Upload>>,
}

impl Link {
    pub(crate) async fn new(stream: TcpStream) -> Result<Self, UpstreamError> {
        // Most requests are a head and nothing else: one buffer is cheaper to write than a list.
        let handshake = Builder::new().writev(false).handshake(UpstreamIo::new(stream)).await;
        let (sender, io) = handshake.map_err(UpstreamError::from_hyper)?;
        Ok(Self { sender, io: Some(Box::pin(io)) })
    }

    /// Sends a request and waits for the head of its answer.
    pub(crate) async fn exchange(
        &mut self,
        request: Request<Upload>,
    ) -> Result<Response<Incoming>, Box<SendError>> {
        let mut answer = std::pin::pin!(self.sender.try_send_request(request));
        let io = &mut self.io;
        let result = poll_fn(|cx| {
            drive(io, cx);
            answer.as_mut().poll(cx)
        });
        result.await.map_err(|mut failed| {
            let unsent = failed.take_message();
            Box::new(SendError { error: UpstreamError::from_hyper(failed.into_error()), unsent })
        })
    }

    /// Lets the connection read and write.
    pub(crate) fn poll_io(&mut self, cx: &mut Context<'_>) {
        drive(&mut self.io, cx);
    }

    /// Whether it could carry another exchange, as far as can be known without trying.
    pub(crate) fn is_idle(&mut self) -> bool {
        self.poll_io(&mut Context::from_waker(Waker::noop()));
        self.io.is_some() && self.sender.is_ready()
    }
}

fn drive(io: &mut Option<Pin<Box<Connection<UpstreamIo, Upload>>>>, cx: &mut Context<'_>) {
    if io.as_mut().is_some_and(|io| io.as_mut().poll(cx).is_ready()) {
        *io = None;
    }
}
