//! How a connection is ended so that the client can read what it was told.
//!
//! Closing a socket that has unread bytes resets it, and so do bytes that arrive after a close, be
//! it a line end or the word that something was read: a reset makes the kernel forget what is still
//! to be sent. So the sending side is shut, and what the client still says is read and forgotten
//! for a short while (RFC 9112 §9.6).

use std::mem::MaybeUninit;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Sleep;

use crate::stream::Stream;

/// For how long, the shutting included.
const LINGERS: Duration = Duration::from_secs(2);

#[derive(Default)]
pub(super) struct Linger {
    end: Option<Pin<Box<Sleep>>>,
    is_shut: bool,
}

impl Linger {
    /// Ready when the client has closed too, something has failed, or the while is over.
    pub(super) fn poll(&mut self, stream: &mut Stream, cx: &mut Context<'_>) -> Poll<()> {
        // First: a client that sends all the time must not put it off.
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
