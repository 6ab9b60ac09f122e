//! A connection with the buffers that HTTP/1 needs, for input and for output, both bounded.
//!
//! Bytes are first read into a buffer that all connections of a worker share, and then copied into
//! the connection's own. So a connection that is idle, or whose message came in one piece, keeps
//! almost nothing in memory. Output takes as few system calls as possible: heads and small data are
//! gathered, large data is not copied.

use std::cell::RefCell;
use std::io::{self, IoSlice};
use std::os::fd::AsFd;
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};

use bytes::{Buf, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::io::stream::Stream;
use crate::process::memory::{MemoryReservation, TLS_UNSENT};

/// A byte stream with bounded input and output buffers.
pub(crate) struct Wire {
    pub(crate) stream: Stream,
    /// The bytes that were read and not parsed yet.
    pub(crate) input: BytesMut,
    /// The size in bytes of the allocation behind `input`. Even a small part of it keeps the whole
    /// allocation.
    allocated: usize,
    /// The heads and small data that are to be written.
    output: Vec<u8>,
    /// The number of bytes of `output` that are written already.
    written: usize,
    /// Large data, which is written after `output`.
    data: Bytes,
    /// The end of a chunk, which is written after `data`.
    tail: &'static [u8],
    /// Whether TLS may hold back written data until it is flushed.
    unflushed: bool,
    /// The memory charged for the buffers.
    held: MemoryReservation,
}

/// The maximum number of bytes that are read at once.
const READ: usize = 64 * 1024;

/// The number of bytes in `output` at which no more is gathered until `output` is written.
const GATHERED: usize = 32 * 1024;

/// The maximum size in bytes of data that is copied into `output`. Larger data is written from its
/// own buffer.
const SMALL: usize = 4096;

/// The maximum size in bytes of a buffer that an idle connection may keep. Such a buffer is not
/// counted, because `memory::CONNECTION` includes it.
const KEPT: usize = 1024;

/// The unit in bytes to which the counted size of a buffer is rounded up, so that the shared
/// counter changes rarely.
const UNIT: usize = 4096;

thread_local! {
    static SCRATCH: RefCell<Box<[u8]>> = RefCell::new(vec![0; READ].into_boxed_slice());
}

impl Wire {
    /// Creates a connection with empty output. `input` holds bytes that were read already. `held`
    /// is a reservation that counts nothing yet.
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

    /// Charges the buffers to the memory budget with their present sizes.
    fn count(&mut self) {
        let of = |bytes: usize| if bytes <= KEPT { 0 } else { bytes.next_multiple_of(UNIT) };
        let tls = if self.unflushed { TLS_UNSENT } else { 0 };
        self.held.set(of(self.allocated) + of(self.output.capacity()) + of(self.data.len()) + tls);
    }

    /// Returns whether the other side has neither closed the connection nor sent anything that was
    /// not read. If it returns false, bytes may be lost, so the connection must not be used again.
    pub(crate) fn is_silent(&mut self) -> bool {
        let silent = |read: io::Result<usize>| {
            read.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
        };
        match &self.stream {
            Stream::Tcp(stream) => silent(stream.try_read(&mut [0])),
            Stream::Unix(stream) => silent(stream.try_read(&mut [0])),
            Stream::TlsClient(_) | Stream::TlsServer(_) => {
                self.poll_fill(&mut Context::from_waker(Waker::noop())).is_pending()
            }
        }
    }

    /// Reads once into `input`, and returns the number of bytes. Zero means that the other side has
    /// ended its output.
    pub(crate) fn poll_fill(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        self.poll_fill_up_to(cx, READ)
    }

    /// Reads once into `input`, at most `most` bytes, and returns their number. The limit matters
    /// because bytes read beyond a head are kept for as long as the request takes.
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

    /// Releases a large input buffer that is fully consumed. `BytesMut` keeps the whole allocation
    /// alive for as long as an empty rest of it lives.
    fn release_input(&mut self) {
        if self.input.is_empty() && self.allocated > KEPT {
            (self.input, self.allocated) = (BytesMut::new(), 0);
        }
    }

    /// Returns the buffer for heads and other text, which are written by the next
    /// [`Wire::poll_flush`].
    ///
    /// Must not be called while large data is waiting: callers check [`Wire::has_room`] first.
    pub(crate) fn out(&mut self) -> &mut Vec<u8> {
        debug_assert!(self.data.is_empty(), "text would overtake data");
        &mut self.output
    }

    /// Adds data to the output, as one chunk if `chunked`. Empty data is ignored.
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

    /// Returns whether more output may be added before the next flush.
    pub(crate) fn has_room(&self) -> bool {
        self.data.is_empty() && self.tail.is_empty() && self.output.len() < GATHERED
    }

    /// Returns the number of bytes that are still to be written.
    pub(crate) fn pending(&self) -> usize {
        self.output.len() - self.written + self.data.len() + self.tail.len()
    }

    /// Returns the number of output bytes that the other side has not acknowledged (TCP). Bytes
    /// that TLS buffers are not included.
    pub(crate) fn unacknowledged(&self) -> usize {
        self.pending() + bywash_sentry::unacknowledged(self.stream.as_fd())
    }

    /// Writes all output. Ready when the kernel has taken it, or when writing fails.
    pub(crate) fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.pending() == 0 && !self.unflushed {
            return Poll::Ready(Ok(()));
        }
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

    /// Waits until the other side has closed the connection or reading fails. Data that arrives
    /// until then is discarded, because no request waits for it.
    pub(crate) fn poll_left(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        while let Ok(1..) = ready!(self.poll_fill(cx)) {
            self.input.clear();
            self.release_idle_buffers();
        }
        Poll::Ready(())
    }

    /// Ends the output, so that the other side sees the end of the stream.
    pub(crate) fn poll_shutdown(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    /// Releases the buffers that a waiting connection does not need: empty ones of more than
    /// [`KEPT`] bytes.
    pub(crate) fn release_idle_buffers(&mut self) {
        self.release_input();
        if self.output.is_empty() && self.output.capacity() > KEPT {
            self.output = Vec::new();
        }
        self.count();
    }

    /// Discards and releases the input, for a connection from which nothing more is parsed. Output
    /// that is still to be sent stays.
    pub(crate) fn forget_input(&mut self) {
        self.input.clear();
        self.release_idle_buffers();
    }
}
