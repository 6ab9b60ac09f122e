//! Chooses a server and a connection for one request, and retries with others.

use std::rc::Rc;

use bywash_config::Timeouts;
use bywash_units::{Time, TimeSpan};

use super::super::deadline::Deadline;
use crate::context::Worker;
use crate::driver::Driver;
use crate::request::record::Record;
use crate::upstream::servers::{Failure, Load};
use crate::upstream::{Exchange, Link, PinnedLink, Pool, UpstreamError};

/// The choice of servers and connections for one request.
pub(super) struct Sender<'a> {
    worker: &'a Worker,
    record: &'a mut Record,
    pub(super) pool: Rc<Pool>,
    timeouts: &'a Timeouts,
    /// The pinned upstream connection of the client connection. `None` if the client connection
    /// cannot have one.
    pin: Option<&'a PinnedLink>,
    /// The servers to which no connection could be made, as a bit mask by server index.
    tried: u64,
    /// The servers that have refused the request without processing it, as a bit mask by server
    /// index. They are chosen only if there is no other.
    refused: u64,
    refusals: u32,
}

/// The maximum number of times that one request is sent again after a server has refused it.
const MOST_AGAIN: u32 = 2;

pub(super) struct Connected {
    pub(super) link: Link,
    pub(super) load: Load,
    /// Whether the connection has carried another request before.
    pub(super) reused: bool,
}

impl<'a> Sender<'a> {
    pub(super) fn new(
        worker: &'a Worker,
        record: &'a mut Record,
        timeouts: &'a Timeouts,
        pin: Option<&'a PinnedLink>,
    ) -> Self {
        let pool = worker.pool();
        Self { worker, record, pool, timeouts, pin, tried: 0, refused: 0, refusals: 0 }
    }

    /// Returns the time since the request arrived.
    pub(super) fn waited(&self, now: Time) -> TimeSpan {
        self.record.waited(now)
    }

    pub(super) async fn connect(
        &mut self,
        may_be_stale: bool,
        deadline: &Deadline,
    ) -> Result<Connected, UpstreamError> {
        let driver = &self.worker.shared.driver;
        let (mut error, mut now) = (UpstreamError::NoServer, driver.now());
        if let Some(connected) = self.pinned(now) {
            self.record.set_server(connected.load.server());
            return Ok(connected);
        }
        loop {
            let Some(load) = self.choose(now) else { return Err(error) };
            let server = load.server();
            self.record.set_server(server);
            if let Some(link) = may_be_stale.then(|| self.pool.take(server)).flatten() {
                return Ok(Connected { link, load, reused: true });
            }
            let limit = deadline.left().min(self.timeouts.connect);
            if limit == TimeSpan::ZERO {
                return Err(UpstreamError::TotalTimeout);
            }
            // Boxed, because the future is large and seldom needed, and would enlarge every
            // request's future.
            let connecting = Connecting::new(driver, load);
            match Box::pin(self.pool.connect(server, limit)).await {
                Ok(link) => return Ok(Connected { link, load: connecting.done(), reused: false }),
                Err(failure) => {
                    let load = connecting.done();
                    now = driver.now();
                    match failure {
                        // Only the local fault is counted. Dropping `load` reports nothing about
                        // the server.
                        UpstreamError::Local(fault) => self.worker.shared.local_fault(fault),
                        _ => load.failed(now, Failure::Connect),
                    }
                    self.tried |= 1 << server;
                    error = failure;
                }
            }
        }
    }

    /// Returns the upstream connection that a server has authenticated for this client connection.
    /// Returns `None` if there is none, or if its server is down.
    fn pinned(&self, now: Time) -> Option<Connected> {
        let (server, link) = self.pin?.take(&self.pool)?;
        let load = self.pool.upstreams().servers.choose(now, !(1 << server))?;
        Some(Connected { link: Link::H1(link), load, reused: true })
    }

    /// Chooses a server that has not failed to connect. A server that has refused the request is
    /// chosen only if there is no other.
    fn choose(&self, now: Time) -> Option<Load> {
        let servers = &self.pool.upstreams().servers;
        let other = servers.choose(now, self.tried | self.refused);
        if other.is_some() || self.refused == 0 {
            return other;
        }
        servers.choose(now, self.tried)
    }

    /// Records that a server has refused the request without processing it. Returns whether the
    /// request may be sent again.
    pub(super) fn refused(&mut self, load: &Load) -> bool {
        self.refused |= 1 << load.server();
        self.refusals += 1;
        self.refusals <= MOST_AGAIN
    }

    /// Ends an exchange that has failed, and reports a failure to the balancer if the server is to
    /// blame.
    pub(super) fn failed(&self, exchange: &Exchange, load: Load, error: &UpstreamError) {
        if matches!(error, UpstreamError::ResponseTimeout(_)) {
            exchange.retire();
        }
        // The server is not to blame for the total time, which includes the client's.
        if !matches!(error, UpstreamError::Upload(_) | UpstreamError::TotalTimeout) {
            load.failed(self.worker.shared.driver.now(), Failure::Response);
        }
    }
}

/// An attempt to connect. If it is dropped after [`Self::LATE`], it counts as failed. Otherwise
/// clients that leave before `connect_timeout` would hide a server that silently drops connection
/// attempts.
struct Connecting<'a> {
    driver: &'a Driver,
    since: Time,
    load: Option<Load>,
}

impl<'a> Connecting<'a> {
    /// The minimum duration of an attempt that counts as failed when this value is dropped. It is
    /// the time after which the kernel repeats a SYN (RFC 6298 §2.1). A longer attempt has lost a
    /// packet, or its TLS handshake is slow.
    const LATE: TimeSpan = TimeSpan::from_secs(1);

    fn new(driver: &'a Driver, load: Load) -> Self {
        Self { driver, since: driver.now(), load: Some(load) }
    }

    fn done(mut self) -> Load {
        self.load.take().expect("taken only here and when dropped")
    }
}

impl Drop for Connecting<'_> {
    fn drop(&mut self) {
        let now = self.driver.now();
        if let Some(load) = self.load.take().filter(|_| now.since(self.since) >= Self::LATE) {
            load.failed(now, Failure::Connect);
        }
    }
}
