//! What all threads of a gateway share.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bywash_engine::{AddressKey, AttemptKey, SessionKey};
use siphasher::sip::SipHasher13;
use tokio::sync::watch;

use crate::audit::Audit;
use crate::driver::Driver;
use crate::elephants::Elephants;
use crate::history::Chronicle;
use crate::journal::Journal;
use crate::memory::{self, Memory};
use crate::metrics::Metrics;
use crate::overrides::Overriding;
use crate::settings::Settings;

/// How far the life of a gateway has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Life {
    /// Ready, and nobody is let in yet.
    Prepared,
    Runs,
    /// No new connections; what has begun may end.
    Drains,
    /// What has not ended is cut off.
    Ends,
}

/// Which listener a connection came in by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Door {
    Clear,
    Tls,
}

/// One for the whole gateway, behind an `Arc`.
pub(crate) struct Shared {
    pub(crate) driver: Arc<Driver>,
    pub(crate) metrics: Metrics,
    pub(crate) journal: Journal,
    /// What causes the load, and what is done about it.
    pub(crate) elephants: Elephants,
    /// What has happened.
    pub(crate) chronicle: Chronicle,
    /// What was decided, by whom and why.
    pub(crate) audit: Audit,
    /// What holds instead of what the file says, and the lock of whoever changes what is in force.
    pub(crate) overriding: Overriding,
    /// What is in force; workers have a copy of their own and are told when it changes.
    settings: watch::Sender<Arc<Settings>>,
    /// No decisions at all: a plain proxy.
    bypass: AtomicBool,
    /// Answers are their connections' last.
    pub(crate) is_draining: AtomicBool,
    /// `/readyz` says no.
    pub(crate) is_leaving: AtomicBool,
    /// Workers that serve.
    pub(crate) workers: AtomicUsize,
    worker_count: usize,
    /// Open client connections.
    pub(crate) connections: AtomicUsize,
    /// Those of each address, if that is limited.
    addresses: Mutex<HashMap<IpAddr, usize>>,
    /// Streams that are counted apart from the limit.
    pub(crate) streams: AtomicUsize,
    /// All that clients make the gateway hold.
    pub(crate) memory: Arc<Memory>,
    /// Bytes of waiting requests' bodies that are held in memory.
    pub(crate) buffered: AtomicUsize,
    /// What clients choose (cookies, addresses) is hashed with a key that they cannot know, so
    /// nobody can make two of them collide.
    secret: Secret,
    request_prefix: u32,
    requests: AtomicU32,
}

/// The key of every hash of what clients choose.
#[derive(Clone, Copy)]
pub(crate) struct Secret(pub(crate) u64, pub(crate) u64);

impl Secret {
    /// A new one. The standard library draws the keys of its own tables from the system.
    pub(crate) fn draw() -> Self {
        Self(RandomState::new().hash_one(0_u8), RandomState::new().hash_one(1_u8))
    }

    fn hash(self, bytes: &[u8]) -> u64 {
        let mut hasher = SipHasher13::new_with_keys(self.0, self.1);
        hasher.write(bytes);
        hasher.finish()
    }
}

impl Shared {
    pub(crate) fn new(
        settings: Settings,
        driver: Driver,
        metrics: Metrics,
        journal: Journal,
        secret: Secret,
    ) -> Self {
        let cores = || std::thread::available_parallelism().map_or(1, usize::from);
        let workers = settings.config.listen.workers;
        let memory = Arc::new(Memory::new(memory::of_this_process(&settings.config)));
        Self {
            memory,
            request_prefix: RandomState::new().hash_one("request prefix") as u32,
            driver: Arc::new(driver),
            metrics,
            journal,
            elephants: Elephants::new(),
            chronicle: Chronicle::new(),
            audit: Audit::default(),
            overriding: Overriding::default(),
            settings: watch::channel(Arc::new(settings)).0,
            bypass: AtomicBool::new(false),
            is_draining: AtomicBool::new(false),
            is_leaving: AtomicBool::new(false),
            workers: AtomicUsize::new(0),
            worker_count: if workers == 0 { cores() } else { workers },
            connections: AtomicUsize::new(0),
            addresses: Mutex::default(),
            streams: AtomicUsize::new(0),
            buffered: AtomicUsize::new(0),
            secret,
            requests: AtomicU32::new(0),
        }
    }

    /// What is in force now.
    pub(crate) fn settings(&self) -> Arc<Settings> {
        Arc::clone(&self.settings.borrow())
    }

    /// What is in force, and what will be.
    pub(crate) fn changes(&self) -> watch::Receiver<Arc<Settings>> {
        self.settings.subscribe()
    }

    pub(crate) fn put_in_force(&self, settings: Arc<Settings>) {
        self.memory.set_budget(memory::of_this_process(&settings.config));
        self.settings.send_replace(settings);
    }

    pub(crate) const fn secret(&self) -> Secret {
        self.secret
    }

    /// The engine's name for a session cookie's value.
    pub(crate) fn session_key(&self, cookie: &[u8]) -> SessionKey {
        SessionKey(self.secret.hash(cookie))
    }

    /// The engine's name for an address.
    pub(crate) fn address_key(&self, address: IpAddr) -> AddressKey {
        AddressKey(match network(address) {
            IpAddr::V4(v4) => self.secret.hash(&v4.octets()),
            IpAddr::V6(v6) => self.secret.hash(&v6.octets()),
        })
    }

    /// The engine's name for what is asked for: of all these together.
    pub(crate) fn attempt_key<const PARTS: usize>(&self, parts: [&[u8]; PARTS]) -> AttemptKey {
        let mut hasher = SipHasher13::new_with_keys(self.secret.0, self.secret.1);
        for part in parts {
            // So that no two lists of parts are one string of bytes.
            hasher.write_usize(part.len());
            hasher.write(part);
        }
        AttemptKey(hasher.finish())
    }

    /// A name for a request that no other request of this process has, for a while.
    pub(crate) fn request_name(&self) -> u64 {
        let number = self.requests.fetch_add(1, Ordering::Relaxed);
        (u64::from(self.request_prefix) << 32) | u64::from(number)
    }

    /// Every worker serves, and none has been told to stop.
    pub(crate) fn is_ready(&self) -> bool {
        let workers = self.workers.load(Ordering::Relaxed);
        !self.is_leaving.load(Ordering::Relaxed) && workers == self.worker_count
    }

    /// How many threads serve clients.
    pub(crate) const fn worker_count(&self) -> usize {
        self.worker_count
    }

    /// Who waits goes on to wait; who runs is not stopped any more.
    pub(crate) fn set_bypass(&self, on: bool) {
        // Both are of the same word, whoever else changes it at the same time.
        self.driver.may_stop(!on, || self.bypass.store(on, Ordering::Relaxed));
    }

    pub(crate) fn is_bypassed(&self) -> bool {
        self.bypass.load(Ordering::Relaxed)
    }
}

/// What is counted as one: IPv6 clients own a /64.
pub(crate) fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(v4) => v4.into(),
        IpAddr::V6(v6) => IpAddr::V6((v6.to_bits() >> 64 << 64).into()),
    }
}

/// A client connection's place, for as long as it is open.
pub(crate) struct Seat {
    shared: Arc<Shared>,
    /// If the connections of one address are limited.
    counted: Option<IpAddr>,
}

impl Seat {
    /// `None`: there are too many connections.
    pub(crate) fn take(shared: &Arc<Shared>, settings: &Settings) -> Option<Self> {
        let limits = &settings.config.limits;
        if shared.connections.fetch_add(1, Ordering::Relaxed) >= limits.connections {
            shared.connections.fetch_sub(1, Ordering::Relaxed);
            return None;
        }
        Some(Self { shared: Arc::clone(shared), counted: None })
    }

    /// Counts it among those of its client. Says whether there may be so many from there.
    pub(crate) fn counts(&mut self, settings: &Settings, address: IpAddr) -> bool {
        let most = settings.config.limits.connections_per_address;
        if most == 0 || settings.trusts(address) {
            return true;
        }
        let network = network(address);
        let mut addresses = self.addresses();
        let open = addresses.entry(network).or_default();
        if *open >= most {
            return false;
        }
        *open += 1;
        drop(addresses);
        self.counted = Some(network);
        true
    }

    fn addresses(&self) -> std::sync::MutexGuard<'_, HashMap<IpAddr, usize>> {
        self.shared.addresses.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.shared.connections.fetch_sub(1, Ordering::Relaxed);
        let Some(network) = self.counted else { return };
        let mut addresses = self.addresses();
        if let Some(open) = addresses.get_mut(&network) {
            *open -= 1;
            if *open == 0 {
                addresses.remove(&network);
            }
        }
    }
}

/// The place of a stream that is counted apart from the limit.
pub(crate) struct StreamSeat(Arc<Shared>);

impl StreamSeat {
    /// `None`: there are as many as may be.
    pub(crate) fn take(shared: &Arc<Shared>, most: usize) -> Option<Self> {
        if shared.streams.fetch_add(1, Ordering::Relaxed) >= most {
            shared.streams.fetch_sub(1, Ordering::Relaxed);
            return None;
        }
        Some(Self(Arc::clone(shared)))
    }
}

impl Drop for StreamSeat {
    fn drop(&mut self) {
        self.0.streams.fetch_sub(1, Ordering::Relaxed);
    }
}
