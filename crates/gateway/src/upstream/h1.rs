//! HTTP/1 with an upstream: one exchange at a time on one connection.
//!
//! **Reading continues after a failed write.** An upstream may respond before it has read the
//! request, for example with 413, and close the connection. Then writing fails although the
//! response is in the socket's buffer. So a failed write is not an error here. The exchange writes
//! no more, and reading determines the state of the connection: a connection that cannot be written
//! to also ends for the reader.
//!
//! **Framing.** The head of the response determines where the response ends. Any ambiguity in it is
//! an error and closes the connection. So do bytes after the end, because no request asked for
//! them.

use std::borrow::Cow;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, BytesMut};
use bywash_message::{Decoder, Fields, Framing, Head, Limits, Response};
use http::{Method, StatusCode};
use tokio::io::AsyncWrite;

use super::{Outbound, UpstreamError};
use crate::io::body::Piece;
use crate::io::body::decode;
use crate::io::stream::Stream;
use crate::io::upload::Upload;
use crate::io::wire::Wire;
use crate::process::memory::MemoryReservation;

/// The limits on the head of a response. Applications are not hostile, but they may be broken.
pub(super) const LIMITS: Limits = Limits { target: 0, fields: 256, bytes: 64 * 1024 };

/// A connection to a server that carries no exchange.
pub(crate) struct Link {
    wire: Wire,
    /// Whether the server has authenticated the connection, or has begun to. It then belongs to one
    /// user.
    authenticated: bool,
}

impl Link {
    pub(super) fn new(stream: Stream, held: MemoryReservation) -> Self {
        Self { wire: Wire::new(stream, BytesMut::new(), held), authenticated: false }
    }

    /// Returns whether the connection can probably carry another exchange: the server has neither
    /// closed it nor sent unrequested bytes.
    pub(super) fn is_idle(&mut self) -> bool {
        self.wire.is_silent()
    }

    /// Returns whether the connection may only carry requests of one client connection, because its
    /// server has authenticated it.
    pub(crate) const fn is_authenticated(&self) -> bool {
        self.authenticated
    }
}

/// One request on a connection, with its response.
#[allow(clippy::struct_excessive_bools, reason = "each is a thing that has happened, or not")]
pub(crate) struct Exchange {
    wire: Wire,
    upload: Upload,
    chunked: bool,
    /// Whether the whole request has been written to the buffer of the wire.
    uploaded: bool,
    sent: u64,
    /// Whether a write has failed, so that no more is written.
    write_failed: bool,
    asked: Method,
    /// Whether the request has a body although its method gives a body no meaning. An application
    /// that does not read such a body takes it for the next request.
    body_may_be_ignored: bool,
    /// Whether the request offered to switch to another protocol.
    offered: bool,
    head: Head,
    answered: bool,
    /// The decoder of the response's body; `None` before the head of the response.
    decoder: Option<Decoder>,
    keep_alive: bool,
    /// Whether the connection must not be used again although the server offers that.
    doubtful: bool,
    /// Whether the server has authenticated the connection: see [`Link::is_authenticated`].
    authenticated: bool,
}

impl Exchange {
    pub(super) fn begin(link: Link, outbound: &Outbound<'_>, upload: Upload) -> Self {
        let Link { mut wire, authenticated } = link;
        let (method, framing) = (outbound.method, outbound.framing);
        let fields = with_connection(outbound);
        bywash_message::write_request(wire.out(), method, outbound.target, &fields, framing);
        Self {
            wire,
            upload,
            chunked: framing == Framing::Chunked,
            uploaded: is_empty(framing),
            sent: 0,
            write_failed: false,
            asked: method.clone(),
            body_may_be_ignored: !is_empty(framing) && !defines_body(method),
            offered: outbound.upgrade.is_some(),
            head: Head::default(),
            answered: false,
            decoder: None,
            keep_alive: false,
            doubtful: false,
            authenticated: authenticated || outbound.fields.authenticates_connection(),
        }
    }

    pub(super) const fn sent(&self) -> u64 {
        self.sent
    }

    /// Returns whether the whole body of the request has arrived from the client.
    pub(super) const fn has_uploaded(&self) -> bool {
        self.uploaded
    }

    /// Returns whether the exchange waits for the client to send more of the request's body.
    pub(super) fn waits_for_client(&self) -> bool {
        !self.uploaded && !self.write_failed && self.wire.has_room()
    }

    pub(super) fn lets_client_go(&mut self) {
        self.upload = Upload::none();
        // The upstream must not take the part of a body that was sent for the whole body.
        self.write_failed |= !self.uploaded;
    }

    pub(super) fn poll_half_close(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if !self.write_failed {
            let _ = ready!(self.wire.poll_flush(cx));
        }
        Pin::new(&mut self.wire.stream).poll_shutdown(cx).map(drop)
    }

    pub(super) const fn is_unanswered(&self) -> bool {
        !self.answered
    }

    /// Takes the part of the body that has arrived, and writes as much as the socket accepts.
    pub(super) fn poll_upload(&mut self, cx: &mut Context<'_>) -> Result<(), UpstreamError> {
        while !self.write_failed {
            let waits = self.gather(cx)?;
            match self.wire.poll_flush(cx) {
                Poll::Ready(Ok(())) if self.uploaded || waits => break,
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(_)) => self.write_failed = true,
                Poll::Pending => break,
            }
        }
        Ok(())
    }

    /// Takes the part of the body that has arrived into the buffer. Returns whether the exchange
    /// waits for the client to send more.
    fn gather(&mut self, cx: &mut Context<'_>) -> Result<bool, UpstreamError> {
        while !self.uploaded && self.wire.has_room() {
            match self.upload.poll_piece(cx) {
                Poll::Pending => return Ok(true),
                Poll::Ready(Err(error)) => return Err(UpstreamError::Upload(error)),
                Poll::Ready(Ok(Piece::Data(data))) => {
                    self.sent += data.len() as u64;
                    self.wire.push(data, self.chunked);
                }
                Poll::Ready(Ok(Piece::End(trailers))) => {
                    self.uploaded = true;
                    if self.chunked {
                        let out = self.wire.out();
                        bywash_message::write_last_chunk(out, trailers.as_deref());
                    }
                }
            }
        }
        Ok(false)
    }

    pub(super) fn poll_head(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Response, UpstreamError>> {
        loop {
            self.poll_upload(cx)?;
            let input = &self.wire.input;
            if let Some(end) = self.head.end(input, &LIMITS).map_err(UpstreamError::Garbage)? {
                return Poll::Ready(self.understand(end));
            }
            match ready!(self.wire.poll_fill(cx)) {
                Ok(0) | Err(_) => return Poll::Ready(Err(UpstreamError::Closed)),
                Ok(_) => self.answered = true,
            }
        }
    }

    fn understand(&mut self, end: usize) -> Result<Response, UpstreamError> {
        let head = &self.wire.input[..end];
        let response =
            Response::parse(head, &self.asked, &LIMITS).map_err(UpstreamError::Garbage)?;
        self.wire.input.advance(end);
        self.head = Head::default();
        self.authenticated |= response.fields.authenticates_connection();
        let interim = response.status.is_informational();
        if !interim || response.status == StatusCode::SWITCHING_PROTOCOLS {
            self.decoder = Some(Decoder::new(response.framing, &LIMITS));
            // After an offer to switch to another protocol, the connection is not used again. Some
            // servers have switched by that time, whatever they responded.
            self.keep_alive = response.keep_alive && !interim && !self.offered;
            self.doubtful = response.doubtful || (self.body_may_be_ignored && self.keep_alive);
            self.keep_alive &= !self.doubtful;
        }
        Ok(response)
    }

    pub(super) fn poll_piece(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Piece, UpstreamError>> {
        self.poll_upload(cx)?;
        let Some(decoder) = &mut self.decoder else {
            return Poll::Ready(Err(UpstreamError::Closed));
        };
        loop {
            let piece = decode(decoder, &mut self.wire.input).map_err(UpstreamError::Garbage)?;
            if let Some(piece) = piece {
                return Poll::Ready(Ok(piece));
            }
            match ready!(self.wire.poll_fill(cx)) {
                Ok(0) => {
                    // A response without a length ends with the connection. Any other response is
                    // truncated.
                    self.keep_alive = false;
                    let ended = decoder.closed().map_err(|_| UpstreamError::Closed);
                    return Poll::Ready(ended.map(|()| Piece::End(None)));
                }
                Ok(_) => {}
                Err(_) => return Poll::Ready(Err(UpstreamError::Closed)),
            }
        }
    }

    pub(super) fn finish(mut self) -> Option<Link> {
        let complete = self.decoder.as_ref().is_some_and(Decoder::is_ended);
        let both = complete && self.uploaded && self.wire.pending() == 0;
        if both && self.doubtful {
            // Without a reset, each such response would leave a local port in TIME_WAIT for a
            // minute.
            self.wire.stream.resets_on_close(true);
        }
        if !both || !self.keep_alive || self.write_failed || !self.wire.input.is_empty() {
            return None;
        }
        self.wire.release_idle_buffers();
        Some(Link { wire: self.wire, authenticated: self.authenticated })
    }

    pub(super) fn into_wire(self) -> Wire {
        self.wire
    }
}

const fn is_empty(framing: Framing) -> bool {
    matches!(framing, Framing::None | Framing::Length(0))
}

/// Returns whether a body has a meaning with this method (RFC 9110 §9.3). An unknown method counts
/// as one that gives a body a meaning.
fn defines_body(method: &Method) -> bool {
    ![Method::GET, Method::HEAD, Method::DELETE, Method::TRACE].contains(method)
}

/// Returns the fields of the request, with those that belong to this connection added.
fn with_connection<'a>(outbound: &Outbound<'a>) -> Cow<'a, Fields> {
    let mut fields = Cow::Borrowed(outbound.fields);
    if let Some(protocol) = outbound.upgrade {
        let fields = fields.to_mut();
        fields.push(b"Connection", b"upgrade");
        fields.push(b"Upgrade", protocol);
    } else if outbound.takes_trailers {
        let fields = fields.to_mut();
        fields.push(b"Connection", b"te");
        fields.push(b"TE", b"trailers");
    }
    fields
}
