//! HTTP/2 with an upstream: many exchanges on one connection, each a stream.
//!
//! The `h2` library splits a connection into handles and a future that reads and writes; that
//! future is a task of the worker. Dropping an exchange drops its handles, and the library then
//! resets the stream: the upstream stops.

use std::cell::Cell;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker, ready};

use bytes::Bytes;
use bywash_message::{Fields, Framing, Response};
use h2::client::{Builder, ResponseFuture, SendRequest};
use h2::{RecvStream, SendStream};
use http::uri::Scheme as UriScheme;
use http::{HeaderValue, Method, Request, Uri, Version, header};

use super::h1::LIMITS;
use super::{Outbound, UpstreamError};
use crate::body::Piece;
use crate::request::Upload;
use crate::stream::Stream;

/// The windows for answers; a stream's is what a slow client may make the gateway hold.
const STREAM_WINDOW: u32 = 256 * 1024;
const CONNECTION_WINDOW: u32 = 4 * 1024 * 1024;

/// A connection, as each of its exchanges has it.
#[derive(Clone)]
pub(crate) struct Link {
    sender: SendRequest<Bytes>,
    secure: bool,
    /// Exchanges on it.
    open: Rc<()>,
    /// It has ended, or nothing new is to go on it.
    over: Rc<Cell<bool>>,
}

impl Link {
    /// Says hello; the connection's own task ends with the connection.
    pub(super) async fn new(stream: Stream, secure: bool) -> io::Result<Self> {
        let mut builder = Builder::new();
        builder
            .initial_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .max_header_list_size(LIMITS.bytes as u32)
            .enable_push(false);
        let (sender, connection) = builder.handshake(stream).await.map_err(io::Error::other)?;
        let over = Rc::new(Cell::new(false));
        let ended = Rc::clone(&over);
        tokio::task::spawn_local(async move {
            let _ = connection.await;
            ended.set(true);
        });
        Ok(Self { sender, secure, open: Rc::new(()), over })
    }

    /// Whether it could carry another exchange at once. A server that has said that it goes away
    /// (GOAWAY) answers what it has, and nothing more.
    pub(super) fn has_room(&mut self) -> bool {
        let ready = self.sender.poll_ready(&mut Context::from_waker(Waker::noop()));
        if matches!(ready, Poll::Ready(Err(_))) {
            self.over.set(true);
        }
        !self.over.get() && self.in_use() < self.sender.current_max_send_streams()
    }

    pub(super) fn is_over(&self) -> bool {
        self.over.get()
    }

    /// Exchanges on it; one of the handles is the pool's own.
    pub(super) fn in_use(&self) -> usize {
        Rc::strong_count(&self.open) - 1
    }
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
}

struct State {
    send: SendStream<Bytes>,
    response: ResponseFuture,
    body: Option<RecvStream>,
}

impl Exchange {
    pub(super) fn begin(mut link: Link, outbound: &Outbound<'_>, upload: Upload) -> Self {
        let ends = matches!(outbound.framing, Framing::None | Framing::Length(0));
        let state = match request(outbound, link.secure) {
            Some(request) => link.sender.send_request(request, ends),
            None => return Self::failed(link, outbound, upload),
        };
        let state = state.map(|(response, send)| State { send, response, body: None });
        Self {
            state: state.map_err(|_| Some(UpstreamError::Closed)),
            link,
            asked: outbound.method.clone(),
            upload,
            uploaded: ends,
            data: Bytes::new(),
            sent: 0,
        }
    }

    fn failed(link: Link, outbound: &Outbound<'_>, upload: Upload) -> Self {
        let fault = bywash_message::Fault::Host;
        Self {
            state: Err(Some(UpstreamError::Garbage(fault))),
            link,
            asked: outbound.method.clone(),
            upload,
            uploaded: true,
            data: Bytes::new(),
            sent: 0,
        }
    }

    pub(super) const fn sent(&self) -> u64 {
        self.sent
    }

    /// Whether it is the client that keeps the request from going on.
    pub(super) fn waits_for_client(&self) -> bool {
        !self.uploaded && self.data.is_empty()
    }

    /// The connection has not answered in time: nobody else is to wait for it.
    pub(super) fn retire(&self) {
        self.link.over.set(true);
    }

    pub(super) fn is_unanswered(&self) -> bool {
        self.state.as_ref().map_or(true, |state| state.body.is_none())
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
        let (parts, body) = response.map_err(|error| failure(&error))?.into_parts();
        let ends = body.is_end_stream();
        state.body = Some(body);
        let response = Response::from_h2(parts, &self.asked, ends, &LIMITS);
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

/// The head as the library takes it. `None`: the host is none that a URI could name.
fn request(outbound: &Outbound<'_>, secure: bool) -> Option<Request<()>> {
    let host = outbound.fields.get(bywash_message::Name::Host)?;
    let scheme = if secure { UriScheme::HTTPS } else { UriScheme::HTTP };
    let uri = Uri::builder().scheme(scheme).authority(host).path_and_query(outbound.target);
    let mut request = Request::new(());
    *request.method_mut() = outbound.method.clone();
    *request.uri_mut() = uri.build().ok()?;
    *request.version_mut() = Version::HTTP_2;
    let mut headers = outbound.fields.to_header_map();
    headers.remove(header::HOST);
    if let Framing::Length(length) = outbound.framing {
        headers.insert(header::CONTENT_LENGTH, HeaderValue::from(length));
    }
    if outbound.takes_trailers {
        headers.insert(header::TE, HeaderValue::from_static("trailers"));
    }
    *request.headers_mut() = headers;
    Some(request)
}
