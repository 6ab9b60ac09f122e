//! A connection with the buffers that HTTP/1 needs: bytes in, bytes out, both bounded.
//!
//! Bytes are read into a buffer that all connections of a worker share and only then into the
//! connection's own. So a connection that is idle, or whose message came in one piece, keeps almost
//! nothing in memory. Output takes as few calls as possible: heads and small data are gathered,
//! large data is not copied.

use std::cell::RefCell;
use std::io::{self, IoSlice};
use std::os::fd::AsFd;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::io::stream::Stream;
use crate::process::memory::{MemoryReservation, TLS_UNSENT};

pub(crate) struct Wire {
    pub(crate) stream: Stream,
    /// Bytes that were read and not parsed yet.
    pub(crate) input: BytesMut,
    /// The size of the allocation behind `input`: a part of it keeps the whole.
    allocated: usize,
    output: Vec<u8>,
    /// The number of bytes of `output` that are written.
    written: usize,
    /// Large data, written after `output`.
    data: Bytes,
    /// Bytes written after `data`.
    tail: &'static [u8],
    /// Whether TLS holds back data until it is flushed.
    unflushed: bool,
    /// The buffers, as counted against the memory budget.
    held: MemoryReservation,
}

/// The most bytes read at once.
const READ: usize = 64 * 1024;

/// The number of bytes from which no more is gathered for writing.
const GATHERED: usize = 32 * 1024;

/// The size up to which data is copied rather than written by itself.
const SMALL: usize = 4096;

/// The bytes that an idle connection may keep of each of its buffers. Smaller buffers are not
/// counted: they are part of `memory::CONNECTION`.
const KEPT: usize = 1024;

/// The unit in which buffers are counted, so that few changes touch the counter.
const UNIT: usize = 4096;

thread_local! {
    static SCRATCH: RefCell<Box<[u8]>> = RefCell::new(vec![0; READ].into_boxed_slice());
}

impl Wire {
    /// Returns a connection with empty output. `held` counts nothing yet.
    pub(crate) fn new(stream: Stream, input: BytesMut, held: MemoryReservation) -> Self {
        let (output, data, allocated) = (Vec::new(), Bytes::new(), input.capacity());
        let mut wire = Self {
            stream,
            input,
            allocated,
            output,
            written: 0,
            data,
            tail: b"",
            unflushed: false,
            held,
        };
        wire.count();
        wire
    }

    /// Counts the buffers as they are now.
    fn count(&mut self) {
        let of = |bytes: usize| if bytes <= KEPT { 0 } else { bytes.next_multiple_of(UNIT) };
        let tls = if self.unflushed { TLS_UNSENT } else { 0 };
        self.held.set(of(self.allocated) + of(self.output.capacity()) + of(self.data.len()) + tls);
    }

    /// Reads once into `input`. Zero bytes mean that the other side has ended its output.
    pub(crate) fn poll_fill(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        self.poll_fill_up_to(cx, READ)
    }

    /// Reads at most `most` bytes: bytes read beyond a head are kept for as long as the request
    /// takes.
    pub(crate) fn poll_fill_up_to(
        &mut self,
        cx: &mut Context<'_>,
        most: usize,
    ) -> Poll<io::Result<usize>> {
        SCRATCH.with_borrow_mut(|scratch| {
            let mut buffer = ReadBuf::new(&mut scratch[..most.min(READ)]);
            ready!(Pin::new(&mut self.stream).poll_read(cx, &mut buffer))?;
            self.release_input();
            self.input.extend_from_slice(buffer.filled());
            self.allocated = self.allocated.max(self.input.capacity());
            self.count();
            Poll::Ready(Ok(buffer.filled().len()))
        })
    }

    /// Releases a large input buffer that is fully consumed: `BytesMut` keeps the whole allocation
    /// for as long as an empty rest of it lives.
    fn release_input(&mut self) {
        if self.input.is_empty() && self.allocated > KEPT {
            (self.input, self.allocated) = (BytesMut::new(), 0);
        }
    }

    /// The buffer for heads, which go out with the next [`Wire::poll_flush`].
    ///
    /// Not to be used while large data is waiting: callers check [`Wire::has_room`] first.
    pub(crate) fn out(&mut self) -> &mut Vec<u8> {
        debug_assert!(self.data.is_empty(), "text would overtake data");
        &mut self.output
    }

    /// Adds data with its framing.
    pub(crate) fn push(&mut self, data: Bytes, chunked: bool) {
        // An empty chunk would end the body.
        if data.is_empty() {
            return;
        }
        if chunked {
            bywash_message::write_chunk_head(self.out(), data.len());
        }
        let tail: &'static [u8] = if chunked { b"\r\n" } else { b"" };
        if data.len() <= SMALL {
            self.output.extend_from_slice(&data);
            self.output.extend_from_slice(tail);
        } else {
            (self.data, self.tail) = (data, tail);
        }
    }

    /// Returns whether more may be gathered.
    pub(crate) fn has_room(&self) -> bool {
        self.data.is_empty() && self.tail.is_empty() && self.output.len() < GATHERED
    }

    /// The number of bytes that are still to be written.
    pub(crate) fn pending(&self) -> usize {
        self.output.len() - self.written + self.data.len() + self.tail.len()
    }

    /// The number of bytes given to be written that the other side has not acknowledged. Bytes
    /// buffered by TLS are not among them.
    pub(crate) fn unacknowledged(&self) -> usize {
        self.pending() + bywash_sentry::unacknowledged(self.stream.as_fd())
    }

    /// Writes everything. Ready when it is written.
    pub(crate) fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = self.poll_write_all(cx);
        self.count();
        flushed
    }

    fn poll_write_all(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.pending() > 0 {
            let stream = Pin::new(&mut self.stream);
            let head = &self.output[self.written..];
            let written = if self.data.is_empty() && self.tail.is_empty() {
                ready!(stream.poll_write(cx, head))?
            } else {
                let slices = [head, &self.data, self.tail].map(IoSlice::new);
                let first = slices.iter().position(|slice| !slice.is_empty()).unwrap_or(0);
                ready!(stream.poll_write_vectored(cx, &slices[first..]))?
            };
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.unflushed = self.stream.is_tls();
            self.wrote(written);
        }
        if self.unflushed {
            ready!(Pin::new(&mut self.stream).poll_flush(cx))?;
            self.unflushed = false;
        }
        Poll::Ready(Ok(()))
    }

    fn wrote(&mut self, mut bytes: usize) {
        let of_output = bytes.min(self.output.len() - self.written);
        self.written += of_output;
        bytes -= of_output;
        let of_data = bytes.min(self.data.len());
        self.data.advance(of_data);
        self.tail = &self.tail[bytes - of_data..];
        if self.written == self.output.len() {
            self.output.clear();
            self.written = 0;
        }
    }

    /// Ready when the other side has closed. Data that it sends until then is discarded: no request
    /// waits for it.
    pub(crate) fn poll_left(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        while let Ok(1..) = ready!(self.poll_fill(cx)) {
            self.input.clear();
            self.rest();
        }
        Poll::Ready(())
    }

    /// Tells the other side that nothing more will come.
    pub(crate) fn poll_shutdown(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    /// Releases the memory that a waiting connection does not need.
    pub(crate) fn rest(&mut self) {
        self.release_input();
        if self.output.is_empty() && self.output.capacity() > KEPT {
            self.output = Vec::new();
        }
        self.count();
    }

    /// Releases the input, for a connection from which nothing more is parsed. Output that is still
    /// to be sent stays.
    pub(crate) fn forget_input(&mut self) {
        self.input.clear();
        self.rest();
    }
}
