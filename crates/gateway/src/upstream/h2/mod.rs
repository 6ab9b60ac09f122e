//! HTTP/2 with an upstream: many exchanges on one connection, each of them a stream.
//!
//! The `h2` library splits a connection into handles, and a future that reads and writes. That
//! future is a task of the worker. Dropping an exchange drops its handles. The library then resets
//! the stream, so the upstream can stop its work.
//!
//! **Requests that the server has not processed.** A stream that the server refuses
//! (`REFUSED_STREAM`) was not processed, and neither was one above the last stream that its GOAWAY
//! names (RFC 9113 §8.7). That is not a failure of the server, and the request may be sent again
//! whatever its method. A connection carries only one stream until the server has announced how
//! many it accepts.
//!
//! **No authentication of the connection.** HTTP/2 does not have such authentication. A server that
//! accepts it nevertheless would attribute every later stream to the same user. Therefore a
//! connection on which NTLM or Negotiate was used carries no new stream. Streams that are open at
//! that time were sent before the authentication.
//!
//! **Disconnects do not end the connection.** A client that leaves resets its stream, and frames
//! that the server had already sent arrive late. The library counts such frames as errors, and
//! closes the connection if there are too many. That limit is disabled here, because the server
//! belongs to the operator.

mod head;
mod ping_timer;

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

use self::ping_timer::{PingAction, PingTimer};
use super::h1::LIMITS;
use super::{Outbound, UpstreamError};
use crate::io::body::{BodyError, Piece};
use crate::io::stream::Stream;
use crate::io::upload::Upload;

/// The flow-control window of each response in bytes: the maximum that a slow client makes the
/// gateway buffer.
const STREAM_WINDOW: u32 = 256 * 1024;

/// The flow-control window of the connection in bytes, which is the largest possible (RFC 9113
/// §6.9.1). If it were less than the sum of the windows of all streams, clients that do not read
/// would stop all other streams. The limit on requests bounds the memory, because each request has
/// only its stream's window.
const CONNECTION_WINDOW: u32 = (1 << 31) - 1;

/// The maximum number of open streams on one connection: as many as fill the connection's window.
const MOST_STREAMS: usize = (CONNECTION_WINDOW / STREAM_WINDOW) as usize;

/// The maximum number of reset streams that are remembered for a second, so that late frames for
/// them are ignored.
const REMEMBERED: usize = 1024;

/// A handle of a connection. The pool has one, and so has each exchange.
#[derive(Clone)]
pub(crate) struct Link {
    sender: SendRequest<Bytes>,
    secure: bool,
    /// Shared by all handles of the connection, so that its reference count is the number of
    /// handles.
    open: Rc<()>,
    /// Whether the connection has ended, or must not carry a new exchange.
    over: Rc<Cell<bool>>,
    ping_timer: Rc<PingTimer>,
    ping: Rc<RefCell<PingPong>>,
}

impl Link {
    /// Performs the HTTP/2 handshake, and spawns the task that reads and writes. That task ends
    /// with the connection.
    pub(super) async fn new(stream: Stream, secure: bool) -> io::Result<Self> {
        let ping_timer = Rc::new(PingTimer::default());
        let stream = ping_timer::inspect(stream, &ping_timer);
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
        Ok(Self { sender, secure, open: Rc::new(()), over, ping_timer, ping })
    }

    /// Pings a server that has been silent, and gives up the connection of a server that does not
    /// respond. Called once a second.
    pub(super) fn tick(&mut self) {
        match self.ping_timer.tick() {
            PingAction::Steady => {}
            PingAction::SendPing => {
                let mut ping = self.ping.borrow_mut();
                // This call takes the response to the previous PING. No task needs to be woken for
                // it, because any received byte shows that the server lives.
                let _ = ping.poll_pong(&mut Context::from_waker(Waker::noop()));
                let _ = ping.send_ping(Ping::opaque());
            }
            PingAction::Gone => self.over.set(true),
        }
    }

    /// Returns whether the connection can carry another exchange at once. A server that has sent
    /// GOAWAY only finishes the streams that are open.
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

    /// Returns the number of exchanges on the connection. The handle of the pool does not count as
    /// an exchange.
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

/// One request on a stream, with its response.
pub(crate) struct Exchange {
    link: Link,
    state: Result<State, Option<UpstreamError>>,
    asked: Method,
    upload: Upload,
    uploaded: bool,
    /// The data that has arrived from the client and for which the upstream's window had no space
    /// yet.
    data: Bytes,
    sent: u64,
    /// Whether the server has not processed the request.
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
                // No byte of the request was sent.
                unprocessed = true;
                Some(UpstreamError::Closed)
            }),
            Err(error) => Err(Some(UpstreamError::Upload(BodyError::Malformed(error)))),
        };
        if state.is_ok() {
            link.ping_timer.waits();
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

    /// Returns whether the whole body of the request has arrived from the client.
    pub(super) const fn has_uploaded(&self) -> bool {
        self.uploaded
    }

    /// Returns whether the exchange waits for the client to send more of the request's body.
    pub(super) fn waits_for_client(&self) -> bool {
        !self.uploaded && self.data.is_empty()
    }

    pub(super) fn lets_client_go(&mut self) {
        self.upload = Upload::none();
    }

    /// Marks the connection so that it carries no new exchange. The reason is that it has not
    /// responded in time, or that it belongs to one user.
    pub(super) fn retire(&self) {
        self.link.over.set(true);
    }

    pub(super) fn is_unanswered(&self) -> bool {
        self.state.as_ref().map_or(true, |state| state.body.is_none())
    }

    /// Returns whether the server has not processed the request, so that it may be sent again
    /// whatever its method.
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
                        // Errors are ignored: a server that does not read the body may have
                        // responded nevertheless.
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
        self.link.ping_timer.answered();
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

/// Converts an error of the library. If the connection has ended, the result is
/// [`UpstreamError::Closed`]: the server may have been closing the connection when the request was
/// sent. Any other error is a reset of the stream, which the request itself has caused.
fn failure(error: &h2::Error) -> UpstreamError {
    if error.is_go_away() || error.is_io() { UpstreamError::Closed } else { UpstreamError::Reset }
}

/// Returns whether the error means that the server has not processed the request (see the module).
/// The library ends a stream because of a GOAWAY only if the stream is above the last one that the
/// GOAWAY names.
fn was_not_processed(error: &h2::Error) -> bool {
    let refused = error.is_reset() && error.reason() == Some(Reason::REFUSED_STREAM);
    error.is_remote() && (error.is_go_away() || refused)
}
