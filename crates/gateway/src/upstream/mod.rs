//! The application behind the gateway (the upstream): its servers, and the connections and
//! exchanges with them.
//!
//! `servers/` chooses the server and `health.rs` schedules the probes, both without I/O. `names.rs`
//! resolves the addresses of the servers, `dial.rs` tries the addresses, and `connect.rs` opens a
//! connection. `pool.rs` keeps idle connections, and `pinned.rs` those that belong to one client
//! connection. `h1.rs` and `h2` carry a request and its response. `gateway/probes.rs` probes the
//! servers and looks up their names.
//!
//! An exchange is polled by the request that it belongs to. After the client has left, it is polled
//! by the task that holds the request's slot (`request/departed.rs`). Dropping an exchange closes
//! the connection (HTTP/1) or resets the stream (HTTP/2) at once.

mod connect;
mod dial;
mod h1;
mod h2;
pub(crate) mod health;
mod names;
mod pinned;
mod pool;
pub(crate) mod servers;

use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bywash_config::{Departures, Scheme, Upstream};
use bywash_engine::End;
use bywash_message::{Fields, Framing, ParseError, Response};
use http::Method;

pub(crate) use connect::Upstreams;
pub(crate) use pinned::PinnedLink;
pub(crate) use pool::{Bounds, Link, Pool};

use crate::io::body::{BodyError, Piece};
use crate::io::upload::Upload;
use crate::io::wire::Wire;
use crate::process::local_fault::LocalFault;
use crate::telemetry::metrics::NameFailure;

/// The maximum number of response heads for one request, including the final one. It bounds the
/// interim heads that are buffered for a client that does not read.
pub(crate) const MOST_HEADS: usize = 64;

/// An error of the exchange between the gateway and the upstream.
#[derive(Debug, thiserror::Error)]
pub(crate) enum UpstreamError {
    /// Every server is down.
    #[error("no server is up")]
    NoServer,
    /// The server's name did not resolve.
    #[error("the server's name does not resolve: {}", .0.name())]
    Name(NameFailure),
    /// The server refused the connection, or the TLS handshake failed.
    #[error("connecting failed: {0}")]
    Connect(std::io::Error),
    /// The gateway's own machine could not open a connection, so no server is to blame.
    #[error("no connection could be opened: {}", .0.name())]
    Local(LocalFault),
    /// The server did not accept the connection in time.
    #[error("connecting took longer than {0:?}")]
    ConnectTimeout(Duration),
    /// The server did not begin to respond within `response_timeout`.
    #[error("no answer within {0:?}")]
    ResponseTimeout(Duration),
    /// The response paused for longer than `idle_timeout`.
    #[error("the answer paused for {0:?}")]
    IdleTimeout(Duration),
    /// The exchange took longer in total than `total_timeout`.
    #[error("the exchange took longer than `total_timeout` allows")]
    TotalTimeout,
    /// The server closed or reset the connection before the response was complete.
    #[error("the connection ended before the answer was complete")]
    Closed,
    /// The server reset the stream.
    #[error("the server reset the stream")]
    Reset,
    /// The client's body broke off or is malformed, or its head cannot be sent to this server over
    /// HTTP/2. The upstream is not to blame.
    #[error("the client's message is invalid: {0}")]
    Upload(BodyError),
    /// The server switched to another protocol although the request did not ask for that.
    #[error("the server switched protocols without being asked")]
    Switched,
    /// The server sent something that is not HTTP.
    #[error("the answer is not valid HTTP: {}", .0.name())]
    Garbage(ParseError),
    /// The number of open streams has reached `client_limits.streams`.
    #[error("too many streams are open")]
    TooManyStreams,
}

impl UpstreamError {
    /// Returns what the error tells the engine about how many requests the application can process
    /// at once.
    pub(crate) const fn end(&self) -> End {
        match self {
            Self::ConnectTimeout(_) | Self::ResponseTimeout(_) | Self::IdleTimeout(_) => {
                End::TimedOut
            }
            // The total time includes the client's, so it says nothing about the application.
            Self::TotalTimeout
            | Self::NoServer
            | Self::Name(_)
            | Self::Connect(_)
            | Self::Local(_)
            | Self::Closed
            | Self::Reset
            | Self::Upload(_)
            | Self::Switched
            | Self::Garbage(_)
            | Self::TooManyStreams => End::Failed,
        }
    }
}

impl UpstreamError {
    /// Converts the error of a failed attempt to connect: a local fault, or one of the server.
    fn of_connect(error: std::io::Error) -> Self {
        LocalFault::of(&error).map_or(Self::Connect(error), Self::Local)
    }

    /// Returns whether the application may still be processing the request, because the gateway
    /// gave up waiting for it.
    pub(crate) const fn is_given_up(&self) -> bool {
        matches!(self, Self::ResponseTimeout(_) | Self::IdleTimeout(_) | Self::TotalTimeout)
    }
}

/// A request in the form in which the gateway sends it to an upstream.
pub(crate) struct Outbound<'a> {
    pub(crate) method: &'a Method,
    /// The path and the query in canonical form.
    pub(crate) target: &'a str,
    pub(crate) fields: &'a Fields,
    pub(crate) framing: Framing,
    /// Whether the client accepts trailers.
    pub(crate) takes_trailers: bool,
    /// The protocol to which the client wants to switch on this connection, if any.
    pub(crate) upgrade: Option<&'a [u8]>,
}

/// A request that is being sent to the upstream, with its response.
pub(crate) enum Exchange {
    H1(Box<h1::Exchange>),
    H2(Box<h2::Exchange>),
}

impl Exchange {
    /// Begins to send a request on this connection. `upload` is its body.
    pub(crate) fn begin(link: Link, outbound: &Outbound<'_>, upload: Upload) -> Self {
        match link {
            Link::H1(link) => Self::H1(Box::new(h1::Exchange::begin(link, outbound, upload))),
            Link::H2(link) => Self::H2(Box::new(h2::Exchange::begin(link, outbound, upload))),
        }
    }

    /// Continues to send the request, and returns the next head of a response: an interim one (1xx)
    /// or the final one.
    pub(crate) fn poll_head(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Response, UpstreamError>> {
        match self {
            Self::H1(exchange) => exchange.poll_head(cx),
            Self::H2(exchange) => exchange.poll_head(cx),
        }
    }

    /// Returns the next piece of the response's body. Must not be called before the final head.
    pub(crate) fn poll_piece(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Piece, UpstreamError>> {
        match self {
            Self::H1(exchange) => exchange.poll_piece(cx),
            Self::H2(exchange) => exchange.poll_piece(cx),
        }
    }

    /// Continues to send the request as far as possible. An error is reported later, by the method
    /// that reads.
    pub(crate) fn poll_upload(&mut self, cx: &mut Context<'_>) {
        match self {
            Self::H1(exchange) => drop(exchange.poll_upload(cx)),
            Self::H2(exchange) => drop(exchange.poll_upload(cx)),
        }
    }

    /// Returns the number of bytes of the request's body that have been sent.
    pub(crate) fn sent(&self) -> u64 {
        match self {
            Self::H1(exchange) => exchange.sent(),
            Self::H2(exchange) => exchange.sent(),
        }
    }

    /// Returns whether the exchange waits for the client to send more of the request's body.
    pub(crate) fn waits_for_client(&self) -> bool {
        match self {
            Self::H1(exchange) => exchange.waits_for_client(),
            Self::H2(exchange) => exchange.waits_for_client(),
        }
    }

    /// Returns whether the whole body of the request has arrived from the client.
    pub(crate) const fn has_uploaded(&self) -> bool {
        match self {
            Self::H1(exchange) => exchange.has_uploaded(),
            Self::H2(exchange) => exchange.has_uploaded(),
        }
    }

    /// Returns whether the server may go on with the request after its client has left.
    /// `departures` says which disconnects the application notices. An HTTP/2 stream with an
    /// incomplete body can only end by a reset, so the result is false for it.
    pub(crate) const fn can_outlive_client(&self, departures: Departures) -> bool {
        match (self, departures) {
            (_, Departures::Noticed) | (Self::H2(_), Departures::Auto) => false,
            (Self::H1(_), Departures::Auto | Departures::Unnoticed) => true,
            (Self::H2(exchange), Departures::Unnoticed) => exchange.has_uploaded(),
        }
    }

    /// Releases everything that belongs to the client. No more of the client's body is sent.
    pub(crate) fn lets_client_go(&mut self) {
        match self {
            Self::H1(exchange) => exchange.lets_client_go(),
            Self::H2(exchange) => exchange.lets_client_go(),
        }
    }

    /// Shuts down the sending side of an HTTP/1 connection once the whole request is written.
    /// Leaves an HTTP/2 connection unchanged, because it carries other requests.
    pub(crate) fn poll_half_close(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        match self {
            Self::H1(exchange) => exchange.poll_half_close(cx),
            Self::H2(_) => Poll::Ready(()),
        }
    }

    /// Prevents new exchanges on this exchange's connection, because it has not responded in time.
    /// Other exchanges on it may still get their responses.
    pub(crate) fn retire(&self) {
        match self {
            // An HTTP/1 connection carries no other exchange.
            Self::H1(_) => {}
            Self::H2(exchange) => exchange.retire(),
        }
    }

    /// Returns whether no byte of a response has arrived.
    pub(crate) fn is_unanswered(&self) -> bool {
        match self {
            Self::H1(exchange) => exchange.is_unanswered(),
            Self::H2(exchange) => exchange.is_unanswered(),
        }
    }

    /// Returns whether the server has reported that it has not processed the request. Then the
    /// request may be sent again whatever its method, and the server has not failed.
    pub(crate) fn is_unprocessed(&self) -> bool {
        match self {
            // HTTP/1 has no way to report this.
            Self::H1(_) => false,
            Self::H2(exchange) => exchange.is_unprocessed(),
        }
    }

    /// Ends the exchange, and returns its connection if that can carry another one.
    pub(crate) fn finish(self) -> Option<Link> {
        match self {
            Self::H1(exchange) => exchange.finish().map(Link::H1),
            // The pool has its own handle of the connection.
            Self::H2(_) => None,
        }
    }

    /// Returns the connection itself, which carries another protocol from now on. Returns `None`
    /// for HTTP/2.
    pub(crate) fn into_wire(self) -> Option<Wire> {
        match self {
            Self::H1(exchange) => Some(exchange.into_wire()),
            Self::H2(_) => None,
        }
    }
}

/// The servers and their state, shared by all threads. A reload that changes the servers replaces
/// it.
pub(crate) type SharedUpstreams = Arc<Upstreams>;

/// Returns whether two configurations mean the same servers, so that everything known about them
/// stays true. With TLS the result is always false, because certificates are renewed under the same
/// paths.
pub(crate) fn same_servers(a: &Upstream, b: &Upstream) -> bool {
    let secure = b.servers.iter().any(|server| server.scheme == Scheme::Https);
    a.servers == b.servers && a.health == b.health && !secure
}
