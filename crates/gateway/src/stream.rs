//! A connection's bytes, whatever they travel in: TCP, a unix socket, TLS on either side.

use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::{client, server};

/// One connection, on either side of the gateway.
pub(crate) enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
    /// A client that speaks TLS with us.
    TlsClient(Box<server::TlsStream<Rewound>>),
    /// A server that we speak TLS with.
    TlsServer(Box<client::TlsStream<TcpStream>>),
}

/// A TCP connection of which some bytes have been read already, to see what they are.
pub(crate) struct Rewound {
    pub(crate) stream: TcpStream,
    /// Given out first.
    pub(crate) ahead: Vec<u8>,
}

impl Stream {
    /// Resets the connection when it is dropped, so that nobody takes what was sent for the whole.
    pub(crate) fn reset_on_close(&self) {
        let _ = match self {
            Self::Tcp(stream) => stream.set_zero_linger(),
            Self::TlsClient(stream) => stream.get_ref().0.stream.set_zero_linger(),
            Self::TlsServer(stream) => stream.get_ref().0.set_zero_linger(),
            // It has no such thing.
            Self::Unix(_) => Ok(()),
        };
    }

    pub(crate) fn is_tls(&self) -> bool {
        matches!(self, Self::TlsClient(_) | Self::TlsServer(_))
    }
}

macro_rules! each {
    ($this:expr, $stream:ident => $act:expr) => {
        match $this.get_mut() {
            Stream::Tcp(stream) => {
                let $stream = Pin::new(stream);
                $act
            }
            Stream::Unix(stream) => {
                let $stream = Pin::new(stream);
                $act
            }
            Stream::TlsClient(stream) => {
                let $stream = Pin::new(stream.as_mut());
                $act
            }
            Stream::TlsServer(stream) => {
                let $stream = Pin::new(stream.as_mut());
                $act
            }
        }
    };
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        each!(self, stream => stream.poll_read(cx, buffer))
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        each!(self, stream => stream.poll_write(cx, bytes))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        each!(self, stream => stream.poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        each!(self, stream => stream.poll_shutdown(cx))
    }

    fn is_write_vectored(&self) -> bool {
        matches!(self, Self::Tcp(_) | Self::Unix(_))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        each!(self, stream => stream.poll_write_vectored(cx, slices))
    }
}

impl AsFd for Rewound {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

impl AsyncRead for Rewound {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.ahead.is_empty() {
            return Pin::new(&mut self.stream).poll_read(cx, buffer);
        }
        let take = self.ahead.len().min(buffer.remaining());
        buffer.put_slice(&self.ahead[..take]);
        self.ahead.drain(..take);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Rewound {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

/// Reads at least one byte more; none is the end.
pub(crate) async fn read_more(stream: &mut TcpStream, into: &mut Vec<u8>) -> io::Result<usize> {
    let mut some = [0; 2048];
    let mut buffer = ReadBuf::new(&mut some);
    std::future::poll_fn(|cx| {
        ready!(Pin::new(&mut *stream).poll_read(cx, &mut buffer))?;
        Poll::Ready(io::Result::Ok(()))
    })
    .await?;
    into.extend_from_slice(buffer.filled());
    Ok(buffer.filled().len())
}
