//! Chooses servers and connections for one request.

use std::rc::Rc;

use bywash_config::Timeouts;
use bywash_units::{Time, TimeSpan};

use super::super::deadline::Deadline;
use crate::context::Worker;
use crate::driver::Driver;
use crate::request::record::Record;
use crate::upstream::servers::{Failure, Load};
use crate::upstream::{Exchange, Link, PinnedLink, Pool, UpstreamError};

/// Chooses servers and connections for one request.
pub(super) struct Sender<'a> {
    worker: &'a Worker,
    record: &'a mut Record,
    pub(super) pool: Rc<Pool>,
    timeouts: &'a Timeouts,
    /// The pinned upstream connection of the client connection, if it may have one.
    pin: Option<&'a PinnedLink>,
    /// A bit mask of the servers that could not be connected to.
    tried: u64,
    /// A bit mask of the servers that have refused the request. Others are tried first.
    refused: u64,
    refusals: u32,
}

/// The number of times that a refused request is sent again.
const MOST_AGAIN: u32 = 2;

pub(super) struct Connected {
    pub(super) link: Link,
    pub(super) load: Load,
    /// The connection has carried another request before.
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

    /// Returns how long ago the request arrived.
    pub(super) fn waited(&self, now: Time) -> TimeSpan {
        self.record.waited(now)
    }

    pub(super) async fn connect(
        &mut self,
        may_be_stale: bool,
        deadline: &Deadline,
    ) -> Result<Connected, UpstreamError> {
        let driver = &self.worker.shared.driver;
        let mut error = UpstreamError::NoServer;
        if let Some(connected) = self.pinned(driver.now()) {
            self.record.goes_to(connected.load.server());
            return Ok(connected);
        }
        loop {
            let Some(load) = self.choose(driver.now()) else { return Err(error) };
            let server = load.server();
            self.record.goes_to(server);
            if let Some(link) = may_be_stale.then(|| self.pool.take(server)).flatten() {
                return Ok(Connected { link, load, reused: true });
            }
            let limit = deadline.left().min(self.timeouts.connect);
            if limit == TimeSpan::ZERO {
                return Err(UpstreamError::TotalTimeout);
            }
            // Boxed, because the future is large and seldom needed, and must not enlarge the
            // request's future.
            let connecting = Connecting::new(driver, load);
            match Box::pin(self.pool.connect(server, limit)).await {
                Ok(link) => return Ok(Connected { link, load: connecting.done(), reused: false }),
                Err(failure) => {
                    let load = connecting.done();
                    match failure {
                        // Dropping `load` reports nothing about its server.
                        UpstreamError::Local(fault) => self.worker.shared.local_fault(fault),
                        _ => load.failed(driver.now(), Failure::Connect),
                    }
                    self.tried |= 1 << server;
                    error = failure;
                }
            }
        }
    }

    /// Returns the connection that a server has authenticated for this client connection, if that
    /// server may be sent a request.
    fn pinned(&self, now: Time) -> Option<Connected> {
        let (server, link) = self.pin?.take(&self.pool)?;
        let load = self.pool.upstreams().servers.choose(now, !(1 << server))?;
        Some(Connected { link: Link::H1(link), load, reused: true })
    }

    /// Chooses a server. One that has refused the request is chosen only if there is no other.
    fn choose(&self, now: Time) -> Option<Load> {
        let servers = &self.pool.upstreams().servers;
        let other = servers.choose(now, self.tried | self.refused);
        if other.is_some() || self.refused == 0 {
            return other;
        }
        servers.choose(now, self.tried)
    }

    /// Records that a server has refused the request without processing it. Returns whether it may
    /// be sent again.
    pub(super) fn refused(&mut self, load: &Load) -> bool {
        self.refused |= 1 << load.server();
        self.refusals += 1;
        self.refusals <= MOST_AGAIN
    }

    /// Ends an exchange that has failed, and tells the balancer if the server is to blame.
    pub(super) fn failed(&self, exchange: &Exchange, load: Load, error: &UpstreamError) {
        if matches!(error, UpstreamError::ResponseTimeout(_)) {
            exchange.retire();
        }
        // The total time includes the client's.
        if !matches!(error, UpstreamError::Upload(_) | UpstreamError::TotalTimeout) {
            load.failed(self.worker.shared.driver.now(), Failure::Response);
        }
    }
}

/// An attempt to connect. Clients that leave before `connect_timeout` would hide a server that
/// drops connection attempts silently. So an attempt that is given up after [`Self::LATE`] counts
/// as failed.
struct Connecting<'a> {
    driver: &'a Driver,
    since: Time,
    load: Option<Load>,
}

impl<'a> Connecting<'a> {
    /// The time after which the kernel repeats a SYN (RFC 6298 §2.1). An attempt that takes as long
    /// has lost a packet, or TLS takes longer than it should.
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
