//! The application behind: its servers, connections to them, and one exchange at a time on each.
//!
//! `servers.rs` says which server is next and `health.rs` when to look whether one is well; both
//! are pure. `names.rs` knows their addresses, `dial.rs` tries these, `connect.rs` opens a connection, `pool.rs` keeps
//! those that are idle, `pinned.rs` those that belong to one client connection, `h1.rs` and `h2.rs` carry a request and
//! its answer. `probe.rs` asks servers how they are.
//!
//! An exchange is polled by the request that it belongs to, and after its client has gone by the task that holds its
//! slot (`request/departed.rs`). Dropping it closes the connection (HTTP/1) or resets the stream (HTTP/2) at once.

mod connect;
mod dial;
mod h1;
mod h2;
mod health;
pub(crate) mod names;
mod pinned;
mod pool;
pub(crate) mod probe;
pub(crate) mod servers;

use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bywash_config::{Departures, Scheme, Upstream};
use bywash_engine::End;
use bywash_message::{Fault, Fields, Framing, Response};
use http::Method;

pub(crate) use connect::Upstreams;
pub(crate) use pinned::PinnedLink;
pub(crate) use pool::{Bounds, Link, Pool};

use crate::body::{BodyError, Piece};
use crate::local_fault::LocalFault;
use crate::request::Upload;
use crate::wire::Wire;

/// Heads that may come for one request, that of the answer among them. Those before it are kept for
/// a client that does not read.
pub(crate) const MOST_HEADS: usize = 64;

/// What went wrong between the gateway and the upstream.
#[derive(Debug, thiserror::Error)]
pub(crate) enum UpstreamError {
    /// Every server is down.
    #[error("no server is up")]
    NoServer,
    /// Its name leads nowhere.
    #[error("the server's name does not resolve: {}", .0.name())]
    Name(names::Cause),
    /// Nobody listens there, or TLS failed.
    #[error("connecting failed: {0}")]
    Connect(std::io::Error),
    /// This machine could not open a connection: no server is to blame.
    #[error("no connection could be opened: {}", .0.name())]
    Local(LocalFault),
    /// It did not take the connection in time.
    #[error("connecting took longer than {0:?}")]
    ConnectTimeout(Duration),
    /// It did not begin to answer in time.
    #[error("no answer within {0:?}")]
    ResponseTimeout(Duration),
    /// Its answer stood still for too long.
    #[error("the answer stood still for {0:?}")]
    IdleTimeout(Duration),
    /// The whole exchange took too long.
    #[error("the exchange took longer than it may")]
    TotalTimeout,
    /// It closed or reset the connection before the answer was complete.
    #[error("the connection ended before the answer")]
    Closed,
    /// It reset the exchange.
    #[error("the upstream reset the stream")]
    Reset,
    /// The client's body broke off or is malformed, or its head cannot be said to this server: the
    /// upstream is not to blame.
    #[error("the client's message is not what it should be: {0}")]
    Upload(BodyError),
    /// It went over to another protocol, and nobody had asked for that.
    #[error("the upstream switched protocols unasked")]
    Switched,
    /// What it sent is no HTTP.
    #[error("the answer is no HTTP: {}", .0.name())]
    Garbage(Fault),
    /// As many streams are open as may be.
    #[error("too many streams are open")]
    TooManyStreams,
}

impl UpstreamError {
    /// What it says of how many requests the application can work on at once.
    pub(crate) const fn end(&self) -> End {
        match self {
            Self::ConnectTimeout(_) | Self::ResponseTimeout(_) | Self::IdleTimeout(_) => {
                End::TimedOut
            }
            // The whole time includes the client's.
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
    /// Why no connection was made.
    fn of_connect(error: std::io::Error) -> Self {
        LocalFault::of(&error).map_or(Self::Connect(error), Self::Local)
    }

    /// Whether the application may still work on what was given up: its time was over, and it had said nothing else.
    pub(crate) const fn is_given_up(&self) -> bool {
        matches!(self, Self::ResponseTimeout(_) | Self::IdleTimeout(_) | Self::TotalTimeout)
    }
}

/// A request as it goes to an upstream.
pub(crate) struct Outbound<'a> {
    pub(crate) method: &'a Method,
    /// Path and query, canonical.
    pub(crate) target: &'a str,
    pub(crate) fields: &'a Fields,
    pub(crate) framing: Framing,
    /// The client can take trailers.
    pub(crate) takes_trailers: bool,
    /// The client wants another protocol on this connection.
    pub(crate) upgrade: Option<&'a [u8]>,
}

/// A request on its way, and its answer on the way back.
pub(crate) enum Exchange {
    H1(Box<h1::Exchange>),
    H2(Box<h2::Exchange>),
}

impl Exchange {
    /// Begins to send.
    pub(crate) fn begin(link: Link, outbound: &Outbound<'_>, upload: Upload) -> Self {
        match link {
            Link::H1(link) => Self::H1(Box::new(h1::Exchange::begin(link, outbound, upload))),
            Link::H2(link) => Self::H2(Box::new(h2::Exchange::begin(link, outbound, upload))),
        }
    }

    /// Sends on and waits for the next head of an answer: one before the answer (1xx), or it.
    pub(crate) fn poll_head(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Response, UpstreamError>> {
        match self {
            Self::H1(exchange) => exchange.poll_head(cx),
            Self::H2(exchange) => exchange.poll_head(cx),
        }
    }

    /// More of the answer's body, once its head is here.
    pub(crate) fn poll_piece(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Piece, UpstreamError>> {
        match self {
            Self::H1(exchange) => exchange.poll_piece(cx),
            Self::H2(exchange) => exchange.poll_piece(cx),
        }
    }

    /// Sends on, as far as it goes; what fails is seen by whoever reads.
    pub(crate) fn poll_upload(&mut self, cx: &mut Context<'_>) {
        match self {
            Self::H1(exchange) => drop(exchange.poll_upload(cx)),
            Self::H2(exchange) => drop(exchange.poll_upload(cx)),
        }
    }

    /// How many bytes of the request's body have gone up.
    pub(crate) fn sent(&self) -> u64 {
        match self {
            Self::H1(exchange) => exchange.sent(),
            Self::H2(exchange) => exchange.sent(),
        }
    }

    /// Whether it is the client that keeps the request from going on.
    pub(crate) fn waits_for_client(&self) -> bool {
        match self {
            Self::H1(exchange) => exchange.waits_for_client(),
            Self::H2(exchange) => exchange.waits_for_client(),
        }
    }

    /// Whether the whole body of the request has come from the client.
    pub(crate) const fn has_uploaded(&self) -> bool {
        match self {
            Self::H1(exchange) => exchange.has_uploaded(),
            Self::H2(exchange) => exchange.has_uploaded(),
        }
    }

    /// Whether the server may go on with the request when its client has gone, as far as `departures` tell. A stream of
    /// HTTP/2 whose body has not come as a whole cannot end in any other way than by a reset.
    pub(crate) const fn can_outlive_client(&self, departures: Departures) -> bool {
        match (self, departures) {
            (_, Departures::Noticed) | (Self::H2(_), Departures::Auto) => false,
            (Self::H1(_), Departures::Auto | Departures::Unnoticed) => true,
            (Self::H2(exchange), Departures::Unnoticed) => exchange.has_uploaded(),
        }
    }

    /// Gives up all that belongs to the client. Nothing more of its body is sent.
    pub(crate) fn lets_client_go(&mut self) {
        match self {
            Self::H1(exchange) => exchange.lets_client_go(),
            Self::H2(exchange) => exchange.lets_client_go(),
        }
    }

    /// Ends this side of the connection, once a whole request has been written. HTTP/2 connections carry other requests
    /// and stay as they are.
    pub(crate) fn poll_half_close(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        match self {
            Self::H1(exchange) => exchange.poll_half_close(cx),
            Self::H2(_) => Poll::Ready(()),
        }
    }

    /// It has not answered in time. Others on the same connection may still be answered; nobody
    /// new is to wait for it.
    pub(crate) fn retire(&self) {
        match self {
            // The connection is its own.
            Self::H1(_) => {}
            Self::H2(exchange) => exchange.retire(),
        }
    }

    /// Whether nothing of an answer has come.
    pub(crate) fn is_unanswered(&self) -> bool {
        match self {
            Self::H1(exchange) => exchange.is_unanswered(),
            Self::H2(exchange) => exchange.is_unanswered(),
        }
    }

    /// Whether the server has not processed the request: so it may be sent again, whatever it asks
    /// for, and the server has not failed.
    pub(crate) fn is_unprocessed(&self) -> bool {
        match self {
            // Nobody says so there.
            Self::H1(_) => false,
            Self::H2(exchange) => exchange.is_unprocessed(),
        }
    }

    /// The connection, if it can carry another exchange.
    pub(crate) fn finish(self) -> Option<Link> {
        match self {
            Self::H1(exchange) => exchange.finish().map(Link::H1),
            // The pool has kept the connection all the while.
            Self::H2(_) => None,
        }
    }

    /// The connection itself: it speaks another protocol from here on.
    pub(crate) fn into_wire(self) -> Option<Wire> {
        match self {
            Self::H1(exchange) => Some(exchange.into_wire()),
            Self::H2(_) => None,
        }
    }
}

/// What servers there are and how they are, for all threads; made anew when they change.
pub(crate) type SharedUpstreams = Arc<Upstreams>;

/// Whether two configurations mean the same servers, so that what is known of them stays true. Of
/// TLS they never do: certificates are renewed under the same names.
pub(crate) fn same_servers(a: &Upstream, b: &Upstream) -> bool {
    let secure = b.servers.iter().any(|server| server.scheme == Scheme::Https);
    a.servers == b.servers && a.health == b.health && !secure
}
