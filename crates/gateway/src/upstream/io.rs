//! The upstream's socket as hyper sees it: what it has to say is read even if it does not listen.
//!
//! An upstream may answer before it has read the request (413, say), and close. Then writing
//! fails, and hyper gives up although the answer lies in the socket's buffer. Here a failed write
//! is no error: it is never done, and reading decides what has become of the connection. It always
//! does, as a connection that cannot be written to is at its end for the reader, too.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

pub(super) struct UpstreamIo {
    stream: TokioIo<TcpStream>,
    /// A write has failed.
    deaf: bool,
}

impl UpstreamIo {
    pub(super) fn new(stream: TcpStream) -> Self {
        Self { stream: TokioIo::new(stream), deaf: false }
    }

    fn written(
        &mut self,
        cx: &Context<'_>,
        result: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        if let Poll::Ready(Err(_)) = result {
            self.deaf = true;
            // hyper reads before it writes: once more, now that there is something to read.
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        result
    }
}

impl Read for UpstreamIo {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl Write for UpstreamIo {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.deaf {
            return Poll::Pending;
        }
        let result = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.written(cx, result)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.deaf { Poll::Pending } else { Pin::new(&mut self.stream).poll_flush(cx) }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if self.deaf {
            return Poll::Pending;
        }
        let result = Pin::new(&mut self.stream).poll_write_vectored(cx, slices);
        self.written(cx, result)
    }
}
