//! A client's socket as hyper sees it, noting when the head of a request begins to arrive.

use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use super::watch::Client;

pub(super) struct ClientIo {
    stream: TokioIo<TcpStream>,
    client: Rc<Client>,
}

impl ClientIo {
    pub(super) fn new(stream: TcpStream, client: Rc<Client>) -> Self {
        Self { stream: TokioIo::new(stream), client }
    }

    fn stream(self: Pin<&mut Self>) -> Pin<&mut TokioIo<TcpStream>> {
        Pin::new(&mut self.get_mut().stream)
    }
}

impl Read for ClientIo {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        let result = self.as_mut().stream().poll_read(cx, buffer);
        if let Poll::Ready(Ok(())) = result {
            self.client.bytes_came();
        }
        result
    }
}

impl Write for ClientIo {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let client = Rc::clone(&self.client);
        client.wrote(self.stream().poll_write(cx, bytes))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream().poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream().poll_shutdown(cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let client = Rc::clone(&self.client);
        client.wrote(self.stream().poll_write_vectored(cx, slices))
    }
}
