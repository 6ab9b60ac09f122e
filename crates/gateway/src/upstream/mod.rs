//! The application behind the gateway: its servers, connections to them, and one exchange at a time
//! on each.
//!
//! `servers.rs` chooses the next server and `health.rs` schedules the probes; both are pure.
//! `names.rs` resolves their addresses, `dial.rs` tries these, `connect.rs` opens a connection,
//! `pool.rs` keeps idle connections, `pinned.rs` keeps those that belong to one client connection,
//! and `h1.rs` and `h2` carry a request and its response. `gateway/probes.rs` probes the servers
//! and looks up their names.
//!
//! An exchange is polled by the request that it belongs to, and after its client has left by the
//! task that holds its slot (`request/departed.rs`). Dropping it closes the connection (HTTP/1) or
//! resets the stream (HTTP/2) at once.

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

/// The maximum number of heads for one request, including the final one. Interim heads are buffered
/// for a client that does not read.
pub(crate) const MOST_HEADS: usize = 64;

/// An error between the gateway and the upstream.
#[derive(Debug, thiserror::Error)]
pub(crate) enum UpstreamError {
    /// Every server is down.
    #[error("no server is up")]
    NoServer,
    /// The server's name does not resolve.
    #[error("the server's name does not resolve: {}", .0.name())]
    Name(NameFailure),
    /// The connection was refused, or TLS failed.
    #[error("connecting failed: {0}")]
    Connect(std::io::Error),
    /// The machine of the gateway could not open a connection, so no server is to blame.
    #[error("no connection could be opened: {}", .0.name())]
    Local(LocalFault),
    /// The server did not accept the connection in time.
    #[error("connecting took longer than {0:?}")]
    ConnectTimeout(Duration),
    /// The server did not begin to respond in time.
    #[error("no answer within {0:?}")]
    ResponseTimeout(Duration),
    /// The response paused for too long.
    #[error("the answer paused for {0:?}")]
    IdleTimeout(Duration),
    /// The whole exchange took too long.
    #[error("the exchange took longer than `total_timeout` allows")]
    TotalTimeout,
    /// The server closed or reset the connection before the response was complete.
    #[error("the connection ended before the answer was complete")]
    Closed,
    /// The server reset the stream.
    #[error("the server reset the stream")]
    Reset,
    /// The client's body broke off or is malformed, or its head cannot be expressed to this server.
    /// The upstream is not to blame.
    #[error("the client's message is invalid: {0}")]
    Upload(BodyError),
    /// The server switched to another protocol without a request to do so.
    #[error("the server switched protocols without being asked")]
    Switched,
    /// The server sent something that is not HTTP.
    #[error("the answer is not valid HTTP: {}", .0.name())]
    Garbage(ParseError),
    /// The limit on open streams is reached.
    #[error("too many streams are open")]
    TooManyStreams,
}

impl UpstreamError {
    /// Returns what the error says about the number of requests that the application can process at
    /// once.
    pub(crate) const fn end(&self) -> End {
        match self {
            Self::ConnectTimeout(_) | Self::ResponseTimeout(_) | Self::IdleTimeout(_) => {
                End::TimedOut
            }
            // The total time includes the client's.
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
    /// Converts the error of a failed attempt to connect.
    fn of_connect(error: std::io::Error) -> Self {
        LocalFault::of(&error).map_or(Self::Connect(error), Self::Local)
    }

    /// Returns whether the application may still be processing the request: it timed out, and no
    /// other error occurred.
    pub(crate) const fn is_given_up(&self) -> bool {
        matches!(self, Self::ResponseTimeout(_) | Self::IdleTimeout(_) | Self::TotalTimeout)
    }
}

/// A request in the form in which it is sent to an upstream.
pub(crate) struct Outbound<'a> {
    pub(crate) method: &'a Method,
    /// Path and query in canonical form.
    pub(crate) target: &'a str,
    pub(crate) fields: &'a Fields,
    pub(crate) framing: Framing,
    /// The client accepts trailers.
    pub(crate) takes_trailers: bool,
    /// The protocol that the client wants to switch to on this connection.
    pub(crate) upgrade: Option<&'a [u8]>,
}

/// A request on its way to the upstream, and its response on the way back.
pub(crate) enum Exchange {
    H1(Box<h1::Exchange>),
    H2(Box<h2::Exchange>),
}

impl Exchange {
    /// Begins to send a request.
    pub(crate) fn begin(link: Link, outbound: &Outbound<'_>, upload: Upload) -> Self {
        match link {
            Link::H1(link) => Self::H1(Box::new(h1::Exchange::begin(link, outbound, upload))),
            Link::H2(link) => Self::H2(Box::new(h2::Exchange::begin(link, outbound, upload))),
        }
    }

    /// Continues sending, and waits for the next head of a response: an interim one (1xx) or the
    /// final one.
    pub(crate) fn poll_head(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Response, UpstreamError>> {
        match self {
            Self::H1(exchange) => exchange.poll_head(cx),
            Self::H2(exchange) => exchange.poll_head(cx),
        }
    }

    /// Returns the next piece of the response body. Must not be called before the final head.
    pub(crate) fn poll_piece(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Piece, UpstreamError>> {
        match self {
            Self::H1(exchange) => exchange.poll_piece(cx),
            Self::H2(exchange) => exchange.poll_piece(cx),
        }
    }

    /// Continues sending as far as possible. Errors are reported to the caller that reads.
    pub(crate) fn poll_upload(&mut self, cx: &mut Context<'_>) {
        match self {
            Self::H1(exchange) => drop(exchange.poll_upload(cx)),
            Self::H2(exchange) => drop(exchange.poll_upload(cx)),
        }
    }

    /// Returns the number of bytes of the request body that have been sent.
    pub(crate) fn sent(&self) -> u64 {
        match self {
            Self::H1(exchange) => exchange.sent(),
            Self::H2(exchange) => exchange.sent(),
        }
    }

    /// Returns whether the request is waiting for its client.
    pub(crate) fn waits_for_client(&self) -> bool {
        match self {
            Self::H1(exchange) => exchange.waits_for_client(),
            Self::H2(exchange) => exchange.waits_for_client(),
        }
    }

    /// Returns whether the whole request body has arrived from the client.
    pub(crate) const fn has_uploaded(&self) -> bool {
        match self {
            Self::H1(exchange) => exchange.has_uploaded(),
            Self::H2(exchange) => exchange.has_uploaded(),
        }
    }

    /// Returns whether the server may continue with the request after its client has left,
    /// according to `departures`. An HTTP/2 stream whose body is incomplete cannot end in any other
    /// way than by a reset.
    pub(crate) const fn can_outlive_client(&self, departures: Departures) -> bool {
        match (self, departures) {
            (_, Departures::Noticed) | (Self::H2(_), Departures::Auto) => false,
            (Self::H1(_), Departures::Auto | Departures::Unnoticed) => true,
            (Self::H2(exchange), Departures::Unnoticed) => exchange.has_uploaded(),
        }
    }

    /// Releases everything that belongs to the client. No more of its body is sent.
    pub(crate) fn lets_client_go(&mut self) {
        match self {
            Self::H1(exchange) => exchange.lets_client_go(),
            Self::H2(exchange) => exchange.lets_client_go(),
        }
    }

    /// Ends this side of the connection once a whole request has been written. HTTP/2 connections
    /// carry other requests, so they stay unchanged.
    pub(crate) fn poll_half_close(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        match self {
            Self::H1(exchange) => exchange.poll_half_close(cx),
            Self::H2(_) => Poll::Ready(()),
        }
    }

    /// Retires the connection of an exchange without a response in time. Other exchanges on it may
    /// still get their response, but no new one must wait for it.
    pub(crate) fn retire(&self) {
        match self {
            // The connection carries nothing else.
            Self::H1(_) => {}
            Self::H2(exchange) => exchange.retire(),
        }
    }

    /// Returns whether nothing of a response has arrived.
    pub(crate) fn is_unanswered(&self) -> bool {
        match self {
            Self::H1(exchange) => exchange.is_unanswered(),
            Self::H2(exchange) => exchange.is_unanswered(),
        }
    }

    /// Returns whether the server has not processed the request. If so, the request may be sent
    /// again whatever its method, and the server has not failed.
    pub(crate) fn is_unprocessed(&self) -> bool {
        match self {
            // HTTP/1 cannot report this.
            Self::H1(_) => false,
            Self::H2(exchange) => exchange.is_unprocessed(),
        }
    }

    /// Returns the connection, if it can carry another exchange.
    pub(crate) fn finish(self) -> Option<Link> {
        match self {
            Self::H1(exchange) => exchange.finish().map(Link::H1),
            // The pool has kept the connection throughout.
            Self::H2(_) => None,
        }
    }

    /// Returns the connection itself, which carries another protocol from now on.
    pub(crate) fn into_wire(self) -> Option<Wire> {
        match self {
            Self::H1(exchange) => Some(exchange.into_wire()),
            Self::H2(_) => None,
        }
    }
}

/// The servers and their state, for all threads. Replaced when the servers change.
pub(crate) type SharedUpstreams = Arc<Upstreams>;

/// Returns whether two configurations mean the same servers, so that everything known about them
/// stays true. With TLS they never do, because certificates are renewed under the same names.
pub(crate) fn same_servers(a: &Upstream, b: &Upstream) -> bool {
    let secure = b.servers.iter().any(|server| server.scheme == Scheme::Https);
    a.servers == b.servers && a.health == b.health && !secure
}
