//! What all threads of a gateway share.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use bywash_engine::{AddressKey, AttemptKey, SessionKey};
use siphasher::sip::SipHasher13;
use tokio::sync::watch;

use crate::audit::Audit;
use crate::connections::Connections;
use crate::driver::Driver;
use crate::elephants::Elephants;
use crate::history::Chronicle;
use crate::journal::Journal;
use crate::local_fault::{FaultLog, LocalFault};
use crate::memory::{self, Memory};
use crate::metrics::Metrics;
use crate::names::Names;
use crate::overrides::Overriding;
use crate::request::StaticFiles;
use crate::settings::Settings;
use crate::state_writer::StateWriter;

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
    /// Writes down what was decided.
    pub(crate) state_writer: StateWriter,
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
    pub(crate) connections: Connections,
    /// Streams that are counted apart from the limit.
    pub(crate) streams: AtomicUsize,
    /// Requests that hold no slot.
    pub(crate) observed: AtomicUsize,
    /// Requests that do not wait for a slot yet, as their bodies are still read.
    pub(crate) uploads: AtomicUsize,
    /// Requests that hold a slot although their clients have gone.
    pub(crate) departed: AtomicUsize,
    /// Requests for files, which hold no slot.
    pub(crate) file_requests: AtomicUsize,
    /// The files that are known.
    pub(crate) files: StaticFiles,
    faults: FaultLog,
    /// All that clients make the gateway hold.
    pub(crate) memory: Arc<Memory>,
    /// Bytes of waiting requests' bodies that are held in memory.
    pub(crate) buffered: AtomicUsize,
    /// What clients choose (cookies, addresses) is hashed with a key that they cannot know, so
    /// nobody can make two of them collide.
    secret: Secret,
    names: Names,
    #[cfg(test)]
    pub(crate) traps: crate::panics::Traps,
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
            driver: Arc::new(driver),
            metrics,
            journal,
            elephants: Elephants::new(),
            chronicle: Chronicle::new(),
            audit: Audit::default(),
            state_writer: StateWriter::new(),
            overriding: Overriding::default(),
            settings: watch::channel(Arc::new(settings)).0,
            bypass: AtomicBool::new(false),
            is_draining: AtomicBool::new(false),
            is_leaving: AtomicBool::new(false),
            workers: AtomicUsize::new(0),
            worker_count: if workers == 0 { cores() } else { workers },
            connections: Connections::new(),
            streams: AtomicUsize::new(0),
            uploads: AtomicUsize::new(0),
            departed: AtomicUsize::new(0),
            file_requests: AtomicUsize::new(0),
            files: StaticFiles::default(),
            observed: AtomicUsize::new(0),
            faults: FaultLog::default(),
            buffered: AtomicUsize::new(0),
            secret,
            names: Names::new(),
            #[cfg(test)]
            traps: crate::panics::Traps::default(),
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

    /// A name for a request that no other request of this process has, and that nobody can foretell.
    pub(crate) fn request_name(&self) -> u64 {
        self.names.next()
    }

    /// Every worker serves, and none has been told to stop.
    pub(crate) fn is_ready(&self) -> bool {
        let workers = self.workers.load(Ordering::Relaxed);
        !self.is_leaving.load(Ordering::Relaxed) && workers == self.worker_count
    }

    /// A request could not be sent to the upstream, and no server is to blame.
    pub(crate) fn local_fault(&self, fault: LocalFault) {
        self.metrics.local_fault(fault);
        self.faults.note(fault, "a request was answered with 503", self.driver.now());
    }

    /// A client's connection could not be accepted.
    pub(crate) fn accept_failed(&self, error: &std::io::Error) {
        let fault = LocalFault::of(error);
        self.metrics.accept_failed(fault);
        if let Some(fault) = fault {
            self.faults.note(fault, "a client's connection was not accepted", self.driver.now());
        }
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

/// A place among requests that are counted apart from the limit.
pub(crate) struct CountedSeat {
    shared: Arc<Shared>,
    count: fn(&Shared) -> &AtomicUsize,
    /// It is that of a file as well.
    is_file: bool,
}

impl CountedSeat {
    /// Of a WebSocket or an event stream. `None`: there are as many as may be.
    pub(crate) fn stream(shared: &Arc<Shared>, most: usize) -> Option<Self> {
        Self::take(shared, |shared| &shared.streams, most)
    }

    /// Of a request that is observed only or bypassed. `None`: there are as many as may be.
    pub(crate) fn observed(shared: &Arc<Shared>, most: usize) -> Option<Self> {
        Self::take(shared, |shared| &shared.observed, most)
    }

    /// Counts a request whose body is read before it waits for a slot. The number of connections bounds them.
    pub(crate) fn upload(shared: &Arc<Shared>) -> Option<Self> {
        Self::take(shared, |shared| &shared.uploads, usize::MAX)
    }

    /// Counts a request that holds a slot, or the place of a file, although its client has gone. Their numbers bound it.
    pub(crate) fn departed(shared: &Arc<Shared>) -> Option<Self> {
        Self::take(shared, |shared| &shared.departed, usize::MAX)
    }

    /// Counts a request for a file, which is one of those that hold no slot. `None`: there are as many as may be of one or
    /// the other.
    pub(crate) fn file(shared: &Arc<Shared>, most: usize, observed: usize) -> Option<Self> {
        let mut seat = Self::observed(shared, observed)?;
        // One too many gives both places back when it is dropped.
        seat.is_file = true;
        (shared.file_requests.fetch_add(1, Ordering::Relaxed) < most).then_some(seat)
    }

    fn take(shared: &Arc<Shared>, count: fn(&Shared) -> &AtomicUsize, most: usize) -> Option<Self> {
        let seat = Self { shared: Arc::clone(shared), count, is_file: false };
        // One too many gives its place back when it is dropped.
        (count(shared).fetch_add(1, Ordering::Relaxed) < most).then_some(seat)
    }
}

impl Drop for CountedSeat {
    fn drop(&mut self) {
        (self.count)(&self.shared).fetch_sub(1, Ordering::Relaxed);
        if self.is_file {
            self.shared.file_requests.fetch_sub(1, Ordering::Relaxed);
        }
    }
}
