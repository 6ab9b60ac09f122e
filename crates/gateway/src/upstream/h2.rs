//! HTTP/2 with an upstream: many exchanges on one connection, each a stream.
//!
//! The `h2` library splits a connection into handles and a future that reads and writes; that
//! future is a task of the worker. Dropping an exchange drops its handles, and the library then
//! resets the stream: the upstream stops.
//!
//! **What the server has not processed.** A stream that it refuses (`REFUSED_STREAM`), or above the
//! last that it names when it goes away (GOAWAY), was not processed (RFC 9113 §8.7): that is no
//! failure of the server, and the request may be sent again whatever it asks for. Until the server
//! has said how many streams it takes, a connection carries one.
//!
//! **No authentication of the connection.** HTTP/2 has none, and a server that takes one all the same
//! would take every later stream for the same user's. So a connection on which NTLM or Negotiate was
//! spoken carries no new stream: those that are open were sent before.
//!
//! **Departures cost the connection nothing.** A client that leaves resets its stream, and what the
//! server had sent by then comes late. The library counts such frames as faults, so it has no limit
//! of these here: the server is the operator's own.

mod head;
mod pulse;

use std::cell::{Cell, RefCell};
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker, ready};

use bytes::Bytes;
use bywash_message::{Fields, Framing, Response};
use h2::client::{Builder, ResponseFuture, SendRequest};
use h2::{Ping, PingPong, Reason, RecvStream, SendStream};
use http::Method;

use self::pulse::{Beat, Pulse};
use super::h1::LIMITS;
use super::{Outbound, UpstreamError};
use crate::body::{BodyError, Piece};
use crate::request::Upload;
use crate::stream::Stream;

/// The windows for answers; a stream's is what a slow client may make the gateway hold.
const STREAM_WINDOW: u32 = 256 * 1024;

/// The largest there is (RFC 9113 §6.9.1). Were it less than the windows of all its streams, clients
/// that do not read would stop everybody else on the connection. What bounds the memory is the
/// limit of requests, each with its stream's window.
const CONNECTION_WINDOW: u32 = (1 << 31) - 1;

/// So many streams fill the connection's window: no more are opened on it.
const MOST_STREAMS: usize = (CONNECTION_WINDOW / STREAM_WINDOW) as usize;

/// Streams that were reset and are remembered for a second, so that what still comes for them is
/// passed over without a word.
const REMEMBERED: usize = 1024;

/// A connection, as each of its exchanges has it.
#[derive(Clone)]
pub(crate) struct Link {
    sender: SendRequest<Bytes>,
    secure: bool,
    /// Exchanges on it.
    open: Rc<()>,
    /// It has ended, or nothing new is to go on it.
    over: Rc<Cell<bool>>,
    pulse: Rc<Pulse>,
    ping: Rc<RefCell<PingPong>>,
}

impl Link {
    /// Says hello; the connection's own task ends with the connection.
    pub(super) async fn new(stream: Stream, secure: bool) -> io::Result<Self> {
        let pulse = Rc::new(Pulse::default());
        let stream = pulse::heard(stream, &pulse);
        let (sender, mut connection) =
            builder().handshake(stream).await.map_err(io::Error::other)?;
        let ping = connection.ping_pong().ok_or_else(|| io::Error::other("taken already"))?;
        let over = Rc::new(Cell::new(false));
        let ended = Rc::clone(&over);
        tokio::task::spawn_local(async move {
            let _ = connection.await;
            ended.set(true);
        });
        let ping = Rc::new(RefCell::new(ping));
        Ok(Self { sender, secure, open: Rc::new(()), over, pulse, ping })
    }

    /// A second has passed: asks a server that says nothing, and gives up one that does not answer.
    pub(super) fn tick(&mut self) {
        match self.pulse.tick() {
            Beat::Steady => {}
            Beat::Ask => {
                let mut ping = self.ping.borrow_mut();
                // Takes the answer to the one before. Nobody is to be woken: any byte counts.
                let _ = ping.poll_pong(&mut Context::from_waker(Waker::noop()));
                let _ = ping.send_ping(Ping::opaque());
            }
            Beat::Gone => self.over.set(true),
        }
    }

    /// Whether it could carry another exchange at once. A server that has said that it goes away
    /// (GOAWAY) answers what it has, and nothing more.
    pub(super) fn has_room(&mut self) -> bool {
        let ready = self.sender.poll_ready(&mut Context::from_waker(Waker::noop()));
        if matches!(ready, Poll::Ready(Err(_))) {
            self.over.set(true);
        }
        let most = self.sender.current_max_send_streams().min(MOST_STREAMS);
        !self.over.get() && self.in_use() < most
    }

    pub(super) fn is_over(&self) -> bool {
        self.over.get()
    }

    /// Exchanges on it; one of the handles is the pool's own.
    pub(super) fn in_use(&self) -> usize {
        Rc::strong_count(&self.open) - 1
    }
}

fn builder() -> Builder {
    let mut builder = Builder::new();
    builder
        .initial_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .initial_max_send_streams(1)
        .max_local_error_reset_streams(None)
        .max_concurrent_reset_streams(REMEMBERED)
        .max_header_list_size(LIMITS.bytes as u32)
        .enable_push(false);
    builder
}

/// A request and its answer.
pub(crate) struct Exchange {
    /// Keeps count of what the connection carries.
    link: Link,
    state: Result<State, Option<UpstreamError>>,
    asked: Method,
    upload: Upload,
    uploaded: bool,
    /// Taken from the client, not yet taken by the upstream's window.
    data: Bytes,
    sent: u64,
    /// The server has not processed the request.
    unprocessed: bool,
}

struct State {
    send: SendStream<Bytes>,
    response: ResponseFuture,
    body: Option<RecvStream>,
}

impl Exchange {
    pub(super) fn begin(mut link: Link, outbound: &Outbound<'_>, upload: Upload) -> Self {
        let ends = matches!(outbound.framing, Framing::None | Framing::Length(0));
        let mut unprocessed = false;
        if outbound.fields.authenticates_connection() {
            link.over.set(true);
        }
        let state = match head::request(outbound, link.secure) {
            Ok(request) => link.sender.send_request(request, ends).map_err(|_| {
                // Not a byte of it was sent.
                unprocessed = true;
                Some(UpstreamError::Closed)
            }),
            Err(fault) => Err(Some(UpstreamError::Upload(BodyError::Malformed(fault)))),
        };
        if state.is_ok() {
            link.pulse.waits();
        }
        Self {
            state: state.map(|(response, send)| State { send, response, body: None }),
            link,
            asked: outbound.method.clone(),
            upload,
            uploaded: ends,
            data: Bytes::new(),
            sent: 0,
            unprocessed,
        }
    }

    pub(super) const fn sent(&self) -> u64 {
        self.sent
    }

    /// Whether the whole body has come from the client.
    pub(super) const fn has_uploaded(&self) -> bool {
        self.uploaded
    }

    /// Whether it is the client that keeps the request from going on.
    pub(super) fn waits_for_client(&self) -> bool {
        !self.uploaded && self.data.is_empty()
    }

    pub(super) fn lets_client_go(&mut self) {
        self.upload = Upload::none();
    }

    /// Lets nothing new go on the connection: it has not answered in time, or is one user's.
    pub(super) fn retire(&self) {
        self.link.over.set(true);
    }

    pub(super) fn is_unanswered(&self) -> bool {
        self.state.as_ref().map_or(true, |state| state.body.is_none())
    }

    /// Whether the request may be sent again, whatever it asks for.
    pub(super) const fn is_unprocessed(&self) -> bool {
        self.unprocessed
    }

    pub(super) fn poll_upload(&mut self, cx: &mut Context<'_>) -> Result<(), UpstreamError> {
        let Ok(state) = &mut self.state else { return Ok(()) };
        while !self.uploaded {
            if self.data.is_empty() {
                match self.upload.poll_piece(cx) {
                    Poll::Pending => return Ok(()),
                    Poll::Ready(Err(error)) => return Err(UpstreamError::Upload(error)),
                    Poll::Ready(Ok(Piece::Data(data))) => self.data = data,
                    Poll::Ready(Ok(Piece::End(trailers))) => {
                        self.uploaded = true;
                        // One that does not listen may have answered all the same.
                        let _ = match trailers {
                            Some(fields) => state.send.send_trailers(fields.to_header_map()),
                            None => state.send.send_data(Bytes::new(), true),
                        };
                        return Ok(());
                    }
                }
            }
            state.send.reserve_capacity(self.data.len());
            let Poll::Ready(Some(Ok(capacity))) = state.send.poll_capacity(cx) else {
                return Ok(());
            };
            let piece = self.data.split_to(capacity.min(self.data.len()));
            self.sent += piece.len() as u64;
            if state.send.send_data(piece, false).is_err() {
                return Ok(());
            }
        }
        Ok(())
    }

    pub(super) fn poll_head(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Response, UpstreamError>> {
        self.poll_upload(cx)?;
        let state = match &mut self.state {
            Ok(state) => state,
            Err(error) => {
                return Poll::Ready(Err(error.take().unwrap_or(UpstreamError::Closed)));
            }
        };
        if let Poll::Ready(Some(Ok(interim))) = state.response.poll_informational(cx) {
            let (parts, ()) = interim.into_parts();
            let response = Response::from_h2(parts, &self.asked, true, &LIMITS);
            return Poll::Ready(response.map_err(UpstreamError::Garbage));
        }
        let response = ready!(Pin::new(&mut state.response).poll(cx));
        let (parts, body) = match response {
            Ok(response) => response.into_parts(),
            Err(error) => {
                self.unprocessed = was_not_processed(&error);
                return Poll::Ready(Err(failure(&error)));
            }
        };
        self.link.pulse.answered();
        let ends = body.is_end_stream();
        state.body = Some(body);
        let response = Response::from_h2(parts, &self.asked, ends, &LIMITS);
        if response.as_ref().is_ok_and(|response| response.fields.authenticates_connection()) {
            self.retire();
        }
        Poll::Ready(response.map_err(UpstreamError::Garbage))
    }

    pub(super) fn poll_piece(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Piece, UpstreamError>> {
        self.poll_upload(cx)?;
        let body = self.state.as_mut().ok().and_then(|state| state.body.as_mut());
        let Some(body) = body else { return Poll::Ready(Err(UpstreamError::Closed)) };
        match ready!(body.poll_data(cx)) {
            Some(Ok(data)) => {
                let _ = body.flow_control().release_capacity(data.len());
                Poll::Ready(Ok(Piece::Data(data)))
            }
            Some(Err(error)) => Poll::Ready(Err(failure(&error))),
            None => {
                let trailers = ready!(body.poll_trailers(cx)).map_err(|error| failure(&error))?;
                let fields = trailers.as_ref().map(Fields::from_trailers);
                Poll::Ready(Ok(Piece::End(fields.map(Box::new))))
            }
        }
    }
}

/// A connection that has ended may have been ending when the request went out; a stream that was
/// reset was reset for what was asked.
fn failure(error: &h2::Error) -> UpstreamError {
    if error.is_go_away() || error.is_io() { UpstreamError::Closed } else { UpstreamError::Reset }
}

/// See the module. The library ends a stream with a GOAWAY of the server's only if it is above the
/// last that this names.
fn was_not_processed(error: &h2::Error) -> bool {
    let refused = error.is_reset() && error.reason() == Some(Reason::REFUSED_STREAM);
    error.is_remote() && (error.is_go_away() || refused)
}
