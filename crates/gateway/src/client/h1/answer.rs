//! Writes the response to a client as fast as it arrives and the client reads, and decides whether
//! the connection stays open.

use std::future::poll_fn;
use std::os::fd::AsFd;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bywash_message::Framing;
use http::StatusCode;

use super::super::linger::Linger;
use super::super::minimum_rate::MinimumRate;
use super::super::{Handler, Phase};
use super::{After, Conn, RequestTraits};
use crate::io::body::Piece;
use crate::request::reply::{Answer, Reply};

/// The error that a response was not delivered: it broke off, or the client has left or is too
/// slow.
struct Broken;

/// The maximum number of bytes of an unwanted request body that are read so that the connection can
/// be kept.
const MOST_DISCARDED: u64 = 64 * 1024;
/// The maximum time for which an unwanted request body is read so that the connection can be kept.
const DISCARDS: Duration = Duration::from_secs(10);

impl Conn {
    /// Writes a response to the client. Returns whether another request may follow on the
    /// connection.
    pub(super) async fn answer(
        &self,
        handler: &impl Handler,
        reply: Reply,
        traits: RequestTraits,
    ) -> After {
        let Reply { status, reason, fields, framing, close, mut body } = reply;
        self.enter_lane(handler, &mut body);
        let framing =
            if traits.old && framing == Framing::Chunked { Framing::UntilClose } else { framing };
        let close = close
            || !traits.keep_alive
            || framing == Framing::UntilClose
            || handler.is_stopping()
            || self.speaks_on(&body)
            || !self.body_may_be_discarded(&body, status, framing);
        let connection = match &body {
            Answer::Tunnel(_) => Some("upgrade"),
            _ if close => Some("close"),
            _ if traits.old => Some("keep-alive"),
            _ => None,
        };
        self.answered.set(true);
        let write = |out| {
            bywash_message::write_response(out, status, &reason, &fields, framing, connection);
        };
        write(self.wire.borrow_mut().out());
        let body = if traits.head { body.without_body() } else { body };
        self.finish(handler, body, framing, close).await
    }

    /// Puts the connection into the lane of this response. That is done before the head is written,
    /// so that the whole response takes one lane. If the client pipelines, the part of the previous
    /// response that the kernel has not sent yet takes this lane too. That part has at most
    /// `stream::UNSENT` bytes.
    fn enter_lane(&self, handler: &impl Handler, body: &mut Answer) {
        let mut mark = self.mark.get();
        handler.enter_lane(self.wire.borrow().stream.as_fd(), &mut mark, body);
        self.mark.set(mark);
    }

    /// Returns whether the client has sent bytes after an upgrade request that was not granted.
    /// These bytes may belong to the other protocol, and must not be parsed as a request.
    fn speaks_on(&self, body: &Answer) -> bool {
        let granted = matches!(body, Answer::Tunnel(_));
        self.upgrades.get() && !granted && !self.wire.borrow().input.is_empty()
    }

    async fn finish(
        &self,
        handler: &impl Handler,
        body: Answer,
        framing: Framing,
        close: bool,
    ) -> After {
        if let Answer::Tunnel(tunnel) = body {
            handler.enter(Phase::Tunnel);
            if self.tunnel(*tunnel).await.is_ok() {
                self.linger().await;
            }
            return After::Close;
        }
        let ours = matches!(body, Answer::Empty | Answer::Local(_));
        // A truncated body must not look complete. Without a length only a reset of the connection
        // shows the truncation. So the socket is set to reset on close, which covers every early
        // end.
        if framing == Framing::UntilClose {
            self.wire.borrow().stream.resets_on_close(true);
        }
        if self.stream(handler, body, framing).await.is_err() {
            return After::Close;
        }
        if framing == Framing::UntilClose {
            self.wire.borrow().stream.resets_on_close(false);
        }
        let is_read = self.incoming.borrow().decoder.is_ended();
        // A request body is discarded only after a response of the gateway's own. An upstream that
        // responds early may still want the rest of the body.
        if !close && (is_read || ours && self.discard(MOST_DISCARDED as usize).await) {
            return After::Again;
        }
        self.linger().await;
        After::Close
    }

    /// Returns whether the connection can be kept although the request body was not read to its
    /// end. After a response of the gateway's own it can, if the rest of the body is small. While a
    /// response arrives from the upstream, the rest of the body still goes to the upstream. Only a
    /// successful chunked response is likely to last until the body has ended. So after any other
    /// response from the upstream the connection ends.
    fn body_may_be_discarded(&self, body: &Answer, status: StatusCode, framing: Framing) -> bool {
        let incoming = self.incoming.borrow();
        match body {
            Answer::Stream(_) => {
                let lasts = status.is_success() && framing == Framing::Chunked;
                incoming.decoder.is_ended() || lasts
            }
            Answer::Tunnel(_) => true,
            Answer::Empty | Answer::Local(_) | Answer::Later(_) => {
                let is_small =
                    || incoming.decoder.left().is_some_and(|left| left <= MOST_DISCARDED);
                incoming.decoder.is_ended() || (!incoming.awaits_continue && is_small())
            }
        }
    }

    /// Writes the response body to the client as fast as it arrives and the client reads. Returns
    /// an error if the body breaks off, or if the client has left or is too slow.
    async fn stream(
        &self,
        handler: &impl Handler,
        mut body: Answer,
        framing: Framing,
    ) -> Result<(), Broken> {
        let chunked = framing == Framing::Chunked;
        let (mut minimum_rate, mut ended, mut broken) =
            (MinimumRate::new(handler.body_rate()), false, false);
        poll_fn(|cx| {
            loop {
                let gathered = if ended || broken {
                    Ok(false)
                } else {
                    self.gather(&mut body, cx, chunked, &mut ended)
                };
                // The request was stopped because the client reads too slowly, so do not wait for
                // the client.
                if body.was_stopped() {
                    return Poll::Ready(Err(Broken));
                }
                // Bytes that arrived before the response broke off are still sent.
                broken |= gathered.is_err();
                let waits = gathered.unwrap_or(false);
                let mut wire = self.wire.borrow_mut();
                let before = wire.pending();
                let flushed = wire.poll_flush(cx).map_err(|_| Broken)?;
                minimum_rate.record_bytes(before - wire.pending());
                match flushed {
                    Poll::Ready(()) if broken => return Poll::Ready(Err(Broken)),
                    Poll::Ready(()) if ended => return Poll::Ready(Ok(())),
                    Poll::Ready(()) if waits && body.is_watched() => {
                        return wire.poll_left(cx).map(|()| Err(Broken));
                    }
                    Poll::Ready(()) if waits => return Poll::Pending,
                    Poll::Ready(()) => {}
                    Poll::Pending => {
                        ready!(minimum_rate.poll_too_slow(cx));
                        handler.record_slow_reader();
                        return Poll::Ready(Err(Broken));
                    }
                }
            }
        })
        .await
    }

    /// Takes pieces of a response into the output buffer while it has space. Returns whether the
    /// next piece has yet to arrive.
    fn gather(
        &self,
        body: &mut Answer,
        cx: &mut Context<'_>,
        chunked: bool,
        ended: &mut bool,
    ) -> Result<bool, Broken> {
        loop {
            if !self.wire.borrow().has_room() {
                let unread = || self.wire.borrow().unacknowledged();
                return if body.poll_upload(cx, unread).is_ready() {
                    Err(Broken)
                } else {
                    Ok(false)
                };
            }
            // The wire is not borrowed here, because polling a response may read its request's body
            // from it.
            match body.poll_piece(cx) {
                Poll::Pending => return Ok(true),
                Poll::Ready(Err(_)) => return Err(Broken),
                Poll::Ready(Ok(Piece::Data(data))) => self.wire.borrow_mut().push(data, chunked),
                Poll::Ready(Ok(Piece::End(trailers))) => {
                    if chunked {
                        let mut wire = self.wire.borrow_mut();
                        bywash_message::write_last_chunk(wire.out(), trailers.as_deref());
                    }
                    *ended = true;
                    return Ok(false);
                }
            }
        }
    }

    /// Reads and discards the rest of an unwanted request body, at most `most` bytes. Returns
    /// whether the body was read to its end within [`DISCARDS`].
    async fn discard(&self, most: usize) -> bool {
        let mut read = 0;
        let rest = poll_fn(|cx| {
            loop {
                if self.incoming.borrow().decoder.is_ended() {
                    return Poll::Ready(true);
                }
                match ready!(self.poll_body(cx)) {
                    Ok(Piece::End(_)) => return Poll::Ready(true),
                    Ok(Piece::Data(data)) if read + data.len() <= most => read += data.len(),
                    Ok(Piece::Data(_)) | Err(_) => return Poll::Ready(false),
                }
            }
        });
        tokio::time::timeout(DISCARDS, rest).await.unwrap_or(false)
    }

    /// Ends the connection in a way that lets the client read the response; see [`Linger`].
    pub(super) async fn linger(&self) {
        self.wire.borrow_mut().forget_input();
        self.request.borrow_mut().set(0);
        let mut linger = Linger::default();
        poll_fn(|cx| linger.poll(&mut self.wire.borrow_mut().stream, cx)).await;
    }
}
