//! Idle connections to the upstream, one pool for each worker.

use std::cell::RefCell;

use bywash_config::Upstream;
use bywash_units::Span;
use http::HeaderValue;
use tokio::net::TcpStream;

use super::{Link, UpstreamError};

pub(crate) struct Pool {
    authority: String,
    host: HeaderValue,
    connect_timeout: Span,
    most: usize,
    /// Used last, taken first: so the rest grow old and are closed.
    idle: RefCell<Vec<Idle>>,
}

struct Idle {
    link: Link,
    ticks: u8,
}

/// Ticks (seconds) that a connection may be idle. Common application servers close theirs after
/// five seconds, and a request on a connection that is just being closed is lost.
const LONGEST_IDLE: u8 = 4;

impl Pool {
    pub(crate) fn new(upstream: &Upstream) -> Self {
        let host = HeaderValue::from_str(&upstream.authority());
        Self {
            host: host.expect("the configuration's host and port are visible characters"),
            authority: upstream.authority(),
            connect_timeout: upstream.connect_timeout,
            most: upstream.limit as usize,
            idle: RefCell::default(),
        }
    }

    /// Where it connects to, as a `Host` field.
    pub(crate) const fn host(&self) -> &HeaderValue {
        &self.host
    }

    /// An idle connection that still stands, if there is one.
    pub(crate) fn take(&self) -> Option<Link> {
        loop {
            let mut link = self.idle.borrow_mut().pop()?.link;
            if link.is_idle() {
                return Some(link);
            }
        }
    }

    /// A connection that is of no use at the moment; dropped if it is of no use at all.
    pub(crate) fn put(&self, mut link: Link) {
        if link.is_idle() && self.idle.borrow().len() < self.most {
            self.idle.borrow_mut().push(Idle { link, ticks: 0 });
        }
    }

    /// A new connection.
    pub(crate) async fn connect(&self) -> Result<Link, UpstreamError> {
        let limit = self.connect_timeout.to_std();
        let stream = tokio::time::timeout(limit, TcpStream::connect(&self.authority)).await;
        let stream = stream
            .map_err(|_| UpstreamError::ConnectTimeout(limit))?
            .map_err(UpstreamError::Connect)?;
        let _ = stream.set_nodelay(true);
        Link::new(stream).await
    }

    /// A second has passed: closes what the upstream has closed or what has been idle too long.
    pub(crate) fn tick(&self) {
        self.idle.borrow_mut().retain_mut(|idle| {
            idle.ticks += 1;
            idle.ticks <= LONGEST_IDLE && idle.link.is_idle()
        });
    }
}
