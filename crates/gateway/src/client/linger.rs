//! Ends a connection so that the client can read the response.
//!
//! Closing a socket that has unread bytes resets the connection. So do bytes that arrive after the
//! close, such as a line end or a `WINDOW_UPDATE`. A reset makes the kernel discard what it has not
//! sent yet. So the sending side is shut down. The bytes that the client still sends are then read
//! and discarded for a short time (RFC 9112 §9.6).

use std::mem::MaybeUninit;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Sleep;

use crate::io::stream::Stream;

/// The time limit for ending a connection, including the shutdown of the sending side.
const LINGERS: Duration = Duration::from_secs(2);

#[derive(Default)]
pub(super) struct Linger {
    end: Option<Pin<Box<Sleep>>>,
    is_shut: bool,
}

impl Linger {
    /// Shuts down the sending side, and then reads and discards. Completes when the client has
    /// closed its side too, an operation has failed, or [`LINGERS`] has passed.
    pub(super) fn poll(&mut self, stream: &mut Stream, cx: &mut Context<'_>) -> Poll<()> {
        // The time limit is checked first, so that a client that sends all the time cannot postpone
        // it.
        let end = self.end.get_or_insert_with(|| Box::pin(tokio::time::sleep(LINGERS)));
        if end.as_mut().poll(cx).is_ready() {
            return Poll::Ready(());
        }
        if !self.is_shut {
            match Pin::new(&mut *stream).poll_shutdown(cx) {
                Poll::Ready(Ok(())) => self.is_shut = true,
                Poll::Ready(Err(_)) => return Poll::Ready(()),
                Poll::Pending => return Poll::Pending,
            }
        }
        let mut forgotten = [MaybeUninit::uninit(); 2048];
        loop {
            let mut buffer = ReadBuf::uninit(&mut forgotten);
            match Pin::new(&mut *stream).poll_read(cx, &mut buffer) {
                Poll::Ready(Ok(())) if !buffer.filled().is_empty() => {}
                Poll::Ready(_) => return Poll::Ready(()),
                Poll::Pending => return Poll::Pending,
            }
        }
    }
}
