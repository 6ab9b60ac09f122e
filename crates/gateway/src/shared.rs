//! What all threads of a gateway share.

use std::hash::{BuildHasher, RandomState};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};

use bywash_config::Config;
use bywash_engine::{AddressKey, SessionKey};

use crate::access_log::AccessLog;
use crate::driver::Driver;
use crate::metrics::Metrics;

/// How far the life of a gateway has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Life {
    Runs,
    /// No new connections; what has begun may end.
    Drains,
    /// What has not ended is cut off.
    Ends,
}

/// One for the whole gateway, behind an `Arc`.
pub(crate) struct Shared {
    pub(crate) config: Config,
    pub(crate) driver: Arc<Driver>,
    pub(crate) metrics: Metrics,
    pub(crate) log: AccessLog,
    /// No decisions at all: a plain proxy.
    pub(crate) bypass: AtomicBool,
    /// No new connections, and the open ones are to end with their present request.
    pub(crate) draining: AtomicBool,
    /// Workers that serve.
    pub(crate) workers: AtomicUsize,
    /// Open client connections.
    pub(crate) connections: AtomicUsize,
    /// Bytes of waiting requests' bodies that are held in memory.
    pub(crate) buffered: AtomicUsize,
    /// What clients choose (cookies, addresses) is hashed with a key that they cannot know, so
    /// nobody can make two of them collide.
    secret: RandomState,
    request_prefix: u32,
    requests: AtomicU32,
}

impl Shared {
    pub(crate) fn new(config: Config, driver: Driver, metrics: Metrics, log: AccessLog) -> Self {
        let secret = RandomState::new();
        Self {
            request_prefix: secret.hash_one("request prefix") as u32,
            config,
            driver: Arc::new(driver),
            metrics,
            log,
            bypass: AtomicBool::new(false),
            draining: AtomicBool::new(false),
            workers: AtomicUsize::new(0),
            connections: AtomicUsize::new(0),
            buffered: AtomicUsize::new(0),
            secret,
            requests: AtomicU32::new(0),
        }
    }

    /// The engine's name for a session cookie's value.
    pub(crate) fn session_key(&self, cookie: &[u8]) -> SessionKey {
        SessionKey(self.secret.hash_one(cookie))
    }

    /// The engine's name for an address. IPv6 clients own a /64, so that is what is charged.
    pub(crate) fn address_key(&self, address: IpAddr) -> AddressKey {
        let network = match address {
            IpAddr::V4(v4) => u128::from(v4.to_bits()),
            IpAddr::V6(v6) => v6.to_bits() >> 64 << 64,
        };
        AddressKey(self.secret.hash_one(network))
    }

    /// A name for a request that no other request of this process has, for a while.
    pub(crate) fn request_name(&self) -> u64 {
        let number = self.requests.fetch_add(1, Ordering::Relaxed);
        (u64::from(self.request_prefix) << 32) | u64::from(number)
    }

    /// Every worker serves, and none has been told to stop.
    pub(crate) fn is_ready(&self) -> bool {
        let workers = self.workers.load(Ordering::Relaxed);
        !self.is_draining() && workers == self.worker_count()
    }

    /// How many threads serve clients.
    pub(crate) fn worker_count(&self) -> usize {
        match self.config.listen.workers {
            0 => std::thread::available_parallelism().map_or(1, usize::from),
            workers => workers,
        }
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Relaxed)
    }

    pub(crate) fn is_bypassed(&self) -> bool {
        self.bypass.load(Ordering::Relaxed)
    }
}
