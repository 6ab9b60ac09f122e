//! Byte streams of connections over any transport: TCP, a unix socket, or TLS on either side.

use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::{client, server};

/// One connection, with a client or with a server.
pub(crate) enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
    /// A client that speaks TLS with the gateway.
    TlsClient(Box<server::TlsStream<Rewound>>),
    /// A server that the gateway speaks TLS with.
    TlsServer(Box<client::TlsStream<TcpStream>>),
}

/// A TCP connection of which some bytes were read already, to detect the protocol. Reading returns
/// these bytes first.
pub(crate) struct Rewound {
    pub(crate) stream: TcpStream,
    /// The bytes that were read already and not returned yet.
    pub(crate) ahead: Vec<u8>,
}

impl Stream {
    /// Sets whether the connection is reset when it is dropped, so that the other side does not
    /// take a truncated message for the whole. Only TCP needs this: TLS has its own message for the
    /// end, and a unix socket has no reset.
    pub(crate) fn resets_on_close(&self, yes: bool) {
        if let Self::Tcp(stream) = self {
            let linger = yes.then_some(Duration::ZERO);
            let _ = SockRef::from(stream).set_linger(linger);
        }
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

/// Gives access to the socket, whatever the transport.
impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Tcp(stream) => stream.as_fd(),
            Self::Unix(stream) => stream.as_fd(),
            Self::TlsClient(stream) => stream.get_ref().0.as_fd(),
            Self::TlsServer(stream) => stream.get_ref().0.as_fd(),
        }
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

/// Turns on TCP keep-alive, and turns off Nagle's algorithm. By keep-alive the kernel detects a
/// peer that has vanished without closing: after a minute of silence and three probes, 10 s apart.
/// Errors are ignored.
pub(crate) fn keep_alive(stream: &TcpStream) {
    const QUIET: Duration = Duration::from_secs(60);
    const AGAIN: Duration = Duration::from_secs(10);
    let keepalive = TcpKeepalive::new().with_time(QUIET).with_interval(AGAIN).with_retries(3);
    // Many messages are small, and the other side waits for each.
    let _ = stream.set_nodelay(true);
    let _ = SockRef::from(stream).set_tcp_keepalive(&keepalive);
}

/// The maximum number of bytes that may wait unsent in the kernel, per client connection. Without a
/// limit the kernel takes megabytes of an answer at once. Then a client that reads them slowly
/// looks like one that does not read at all, and each slow client costs as much memory.
const UNSENT: u32 = 64 * 1024;

/// Limits the unsent bytes in the kernel to [`UNSENT`]. Errors are ignored.
pub(crate) fn limit_unsent(stream: &TcpStream) {
    let _ = SockRef::from(stream).set_tcp_notsent_lowat(UNSENT);
}

/// Sets the size in bytes of the kernel's receive buffer; with `None` the kernel chooses the size,
/// up to megabytes. Errors are ignored.
pub(crate) fn limit_unread(stream: &TcpStream, bytes: Option<usize>) {
    if let Some(bytes) = bytes {
        let _ = SockRef::from(stream).set_recv_buffer_size(bytes);
    }
}

/// Waits for more bytes and appends them to `into`. Returns their number, which is zero at the end
/// of the stream.
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
