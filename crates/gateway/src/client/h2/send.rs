//! Sends responses to an HTTP/2 client, within its flow-control window.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use bywash_message::{Fields, Framing};
use h2::{Reason, SendStream};
use http::{HeaderValue, Response, header};

use super::{Outgoing, SEND_BUFFER, Unsent};
use crate::client::minimum_rate::MinimumRate;
use crate::client::{Handler, Plane};
use crate::io::body::Piece;
use crate::process::memory::MemoryReservation;
use crate::request::reply::{Answer, Reply};

/// The number of bytes that wait for the client's window at which no more of a response is
/// gathered.
const GATHERED: usize = 32 * 1024;

/// Sends the response to one request. If the response breaks off or the client reads too slowly,
/// the stream is reset. `head` says whether the request is a HEAD.
pub(super) async fn send(
    outgoing: &Outgoing,
    reply: Reply,
    head: bool,
    handler: &Plane,
    unsent: &Unsent,
) {
    let Reply { status, fields, framing, body, .. } = reply;
    let mut response = Response::new(());
    *response.status_mut() = status;
    *response.headers_mut() = fields.to_header_map();
    if let Framing::Length(length) = framing {
        response.headers_mut().insert(header::CONTENT_LENGTH, HeaderValue::from(length));
    }
    let mut body = if head { body.without_body() } else { body };
    handler.prepare_shared_response(&mut body);
    let is_empty = matches!(body, Answer::Empty);
    outgoing.answered.set(true);
    let sent = outgoing.respond.borrow_mut().send_response(response, is_empty);
    let Ok(mut stream) = sent else { return };
    if is_empty {
        return;
    }
    let mut backlog = handler.hold(0);
    if stream_body(&mut stream, body, handler, &mut backlog).await.is_err() {
        // The response is truncated, and must not look complete.
        stream.send_reset(Reason::INTERNAL_ERROR);
    } else {
        unsent.add(backlog.bytes());
    }
}

/// The error that a response was not delivered: it broke off, or the client has left or is too
/// slow.
struct Broken;

async fn stream_body(
    stream: &mut SendStream<Bytes>,
    mut body: Answer,
    handler: &Plane,
    held: &mut MemoryReservation,
) -> Result<(), Broken> {
    let mut minimum_rate = MinimumRate::new(handler.body_rate());
    let mut gathered = Gathered::default();
    poll_fn(|cx| {
        loop {
            if stream.poll_reset(cx).is_ready() {
                return Poll::Ready(Err(Broken));
            }
            gathered.take(&mut body, cx)?;
            if gathered.pieces.is_empty() {
                if !gathered.ended {
                    return Poll::Pending;
                }
                return Poll::Ready(finish(stream, gathered.trailers.as_deref()));
            }
            if let Poll::Ready(bytes) = gathered.poll_send(stream, cx)? {
                minimum_rate.record_bytes(bytes);
                held.set(SEND_BUFFER.min(held.bytes() + bytes));
            } else {
                if body.poll_upload(cx, || gathered.bytes).is_ready() {
                    return Poll::Ready(Err(Broken));
                }
                ready!(minimum_rate.poll_too_slow(cx));
                handler.record_slow_reader();
                return Poll::Ready(Err(Broken));
            }
        }
    })
    .await
}

/// The part of a response that waits for the client's window. A response of less than [`GATHERED`]
/// bytes is gathered to its end at once. So its request gives the slot back before the client has
/// read the response.
#[derive(Default)]
struct Gathered {
    /// The pieces that are to be sent, none of them empty.
    pieces: VecDeque<Bytes>,
    /// The total size of `pieces`, in bytes.
    bytes: usize,
    /// Whether the end of the response has arrived.
    ended: bool,
    trailers: Option<Box<Fields>>,
}

impl Gathered {
    /// Takes the pieces of the response that are available, until [`GATHERED`] bytes wait. Returns
    /// an error if the response breaks off.
    fn take(&mut self, body: &mut Answer, cx: &mut Context<'_>) -> Result<(), Broken> {
        while !self.ended && self.bytes < GATHERED {
            match body.poll_piece(cx) {
                Poll::Pending => break,
                Poll::Ready(Err(_)) => return Err(Broken),
                Poll::Ready(Ok(Piece::Data(piece))) if piece.is_empty() => {}
                Poll::Ready(Ok(Piece::Data(piece))) => {
                    self.bytes += piece.len();
                    self.pieces.push_back(piece);
                }
                Poll::Ready(Ok(Piece::End(trailers))) => {
                    (self.ended, self.trailers) = (true, trailers);
                }
            }
        }
        Ok(())
    }

    /// Hands the library as much of the first piece as the client's window allows, and returns the
    /// number of bytes. Pending if the window is used up. Returns an error if the client has left.
    fn poll_send(
        &mut self,
        stream: &mut SendStream<Bytes>,
        cx: &mut Context<'_>,
    ) -> Result<Poll<usize>, Broken> {
        let Some(data) = self.pieces.front_mut() else { return Ok(Poll::Ready(0)) };
        stream.reserve_capacity(data.len());
        match stream.poll_capacity(cx) {
            Poll::Pending => Ok(Poll::Pending),
            Poll::Ready(Some(Ok(capacity))) => {
                let piece = data.split_to(capacity.min(data.len()));
                if data.is_empty() {
                    self.pieces.pop_front();
                }
                let bytes = piece.len();
                self.bytes -= bytes;
                stream.send_data(piece, false).map_err(|_| Broken)?;
                Ok(Poll::Ready(bytes))
            }
            Poll::Ready(Some(Err(_)) | None) => Err(Broken),
        }
    }
}

fn finish(stream: &mut SendStream<Bytes>, trailers: Option<&Fields>) -> Result<(), Broken> {
    let sent = match trailers {
        Some(fields) => stream.send_trailers(fields.to_header_map()),
        None => stream.send_data(Bytes::new(), true),
    };
    sent.map_err(|_| Broken)
}
