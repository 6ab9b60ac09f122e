//! The state that all threads of a gateway share.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bywash_control::Overrides;
use tokio::sync::watch;

use crate::connections::Connections;
use crate::driver::Driver;
use crate::elephants::Elephants;
use crate::process::local_fault::{FaultLog, LocalFault};
use crate::process::memory;
use crate::process::memory::Memory;
use crate::process::names::Names;
use crate::process::secret::Secret;
use crate::settings::Settings;
use crate::state::audit::Audit;
use crate::state::stored::Stored;
use crate::state::writer::StateWriter;
use crate::static_files::{FileKey, Shows, StaticFiles};
use crate::telemetry::history::HistoryRecorder;
use crate::telemetry::metrics::Metrics;
use crate::telemetry::request_log::RequestLog;

/// The shared state, one per gateway, behind an `Arc`.
pub(crate) struct Shared {
    pub(crate) driver: Arc<Driver>,
    pub(crate) metrics: Metrics,
    pub(crate) request_log: RequestLog,
    /// The causes of the load, and the rules against them.
    pub(crate) elephants: Elephants,
    /// The recorded history.
    pub(crate) history_recorder: HistoryRecorder,
    /// Decisions with author and reason.
    pub(crate) audit: Audit,
    /// Saves decisions.
    pub(crate) state_writer: StateWriter,
    /// The overrides of the file, behind the lock that every change of the settings takes.
    overrides: Mutex<Stored<Overrides>>,
    /// Why the last reload was refused, if it was.
    reload_refused: Mutex<Option<String>>,
    /// Whether the process was started bypassed. Changed under the lock of the overrides.
    pub(crate) starts_bypassed: AtomicBool,
    /// The settings in force. Workers have their own copy and are notified of changes.
    settings: watch::Sender<Arc<Settings>>,
    /// Whether no decisions are taken at all: a plain proxy.
    bypass: AtomicBool,
    /// Whether each connection ends after its present answer.
    pub(crate) is_draining: AtomicBool,
    /// Whether `/readyz` says no.
    pub(crate) is_leaving: AtomicBool,
    /// The number of workers that serve.
    pub(crate) workers: AtomicUsize,
    worker_count: usize,
    /// Open client connections.
    pub(crate) connections: Connections,
    /// The number of streams that are counted separately from the limit.
    pub(crate) streams: AtomicUsize,
    /// The number of requests that hold no slot.
    pub(crate) observed: AtomicUsize,
    /// The number of requests that do not wait for a slot yet, as their bodies are still read.
    pub(crate) uploads: AtomicUsize,
    /// The number of requests that hold a slot although their clients have left.
    pub(crate) departed: AtomicUsize,
    /// The number of requests for files, which hold no slot.
    pub(crate) file_requests: AtomicUsize,
    /// The number of files that servers have sent whole, and clients have not taken yet.
    pub(crate) kept_files: AtomicUsize,
    /// The files that are known.
    pub(crate) files: StaticFiles,
    faults: FaultLog,
    /// The memory that clients make the gateway hold.
    pub(crate) memory: Arc<Memory>,
    /// The key for hashes of values that clients choose (cookies, addresses). Clients cannot know
    /// it, so they cannot construct collisions.
    pub(crate) secret: Secret,
    names: Names,
    #[cfg(test)]
    pub(crate) traps: crate::process::panics::Traps,
}

impl Shared {
    pub(crate) fn new(
        settings: Settings,
        driver: Driver,
        metrics: Metrics,
        request_log: RequestLog,
        secret: Secret,
    ) -> Self {
        let cores = || std::thread::available_parallelism().map_or(1, usize::from);
        let workers = settings.config.listen.workers;
        let memory = Arc::new(Memory::new(memory::of_this_process(&settings.config)));
        Self {
            memory,
            driver: Arc::new(driver),
            metrics,
            request_log,
            elephants: Elephants::new(),
            history_recorder: HistoryRecorder::new(),
            audit: Audit::default(),
            state_writer: StateWriter::new(),
            overrides: Mutex::default(),
            reload_refused: Mutex::default(),
            starts_bypassed: AtomicBool::new(false),
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
            kept_files: AtomicUsize::new(0),
            files: StaticFiles::default(),
            observed: AtomicUsize::new(0),
            faults: FaultLog::default(),
            secret,
            names: Names::new(),
            #[cfg(test)]
            traps: crate::process::panics::Traps::default(),
        }
    }

    /// Locks the overrides, for reading, or for changing them together with the settings in force.
    pub(crate) fn overrides(&self) -> MutexGuard<'_, Stored<Overrides>> {
        self.overrides.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records the end of a reload: `refused` is the reason if it was refused.
    pub(crate) fn reloaded(&self, refused: Option<String>) {
        self.metrics.reloaded(refused.is_none());
        *self.reload_refused.lock().unwrap_or_else(PoisonError::into_inner) = refused;
    }

    /// Returns why the last reload was refused, if it was.
    pub(crate) fn reload_refused(&self) -> Option<String> {
        self.reload_refused.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The settings in force now.
    pub(crate) fn settings(&self) -> Arc<Settings> {
        Arc::clone(&self.settings.borrow())
    }

    /// Returns a receiver of the settings in force and of later ones.
    pub(crate) fn changes(&self) -> watch::Receiver<Arc<Settings>> {
        self.settings.subscribe()
    }

    pub(crate) fn put_in_force(&self, settings: Arc<Settings>) {
        self.memory.set_budget(memory::of_this_process(&settings.config));
        self.settings.send_replace(settings);
    }

    /// Records the conclusion about a target that may be a file.
    pub(crate) fn note_file(&self, file: FileKey, shows: Shows) {
        if self.files.note(file, shows) {
            self.metrics.file_forgotten();
        }
    }

    /// Returns a name for a request that is unique in this process and that nobody can predict.
    pub(crate) fn request_name(&self) -> u64 {
        self.names.next()
    }

    /// Returns whether every worker serves and the gateway is not stopping.
    pub(crate) fn is_ready(&self) -> bool {
        let workers = self.workers.load(Ordering::Relaxed);
        !self.is_leaving.load(Ordering::Relaxed) && workers == self.worker_count
    }

    /// Counts and logs a request that could not be sent upstream because of a local fault.
    pub(crate) fn local_fault(&self, fault: LocalFault) {
        self.metrics.local_fault(fault);
        self.faults.note(fault, "a request was answered with 503", self.driver.now());
    }

    /// Counts and logs a client's connection that could not be accepted.
    pub(crate) fn accept_failed(&self, error: &std::io::Error) {
        let fault = LocalFault::of(error);
        self.metrics.accept_failed(fault);
        if let Some(fault) = fault {
            self.faults.note(fault, "a client's connection was not accepted", self.driver.now());
        }
    }

    /// The number of threads that serve clients.
    pub(crate) const fn worker_count(&self) -> usize {
        self.worker_count
    }

    /// Turns bypass on or off. Turning it on does not release requests that wait; requests that run
    /// are no longer stopped.
    pub(crate) fn set_bypass(&self, on: bool) {
        // Set both under the engine's lock, so that concurrent changes cannot mix them.
        self.driver.may_stop(!on, || self.bypass.store(on, Ordering::Relaxed));
    }

    pub(crate) fn is_bypassed(&self) -> bool {
        self.bypass.load(Ordering::Relaxed)
    }
}

/// An entry in one of the counts of requests that are not counted against the limit.
pub(crate) struct CountedPermit {
    shared: Arc<Shared>,
    count: fn(&Shared) -> &AtomicUsize,
    /// Whether it also counts as a file request.
    is_file: bool,
}

impl CountedPermit {
    /// Counts a WebSocket or an event stream. Returns `None` if there are as many as allowed.
    pub(crate) fn stream(shared: &Arc<Shared>, most: usize) -> Option<Self> {
        Self::take(shared, |shared| &shared.streams, most)
    }

    /// Counts a request that is only observed, or bypassed. Returns `None` if there are as many as
    /// allowed.
    pub(crate) fn observed(shared: &Arc<Shared>, most: usize) -> Option<Self> {
        Self::take(shared, |shared| &shared.observed, most)
    }

    /// Counts a request whose body is read before it waits for a slot. The number of connections
    /// bounds these.
    pub(crate) fn upload(shared: &Arc<Shared>) -> Option<Self> {
        Self::take(shared, |shared| &shared.uploads, usize::MAX)
    }

    /// Counts a request that holds a slot, or a file request's entry, although its client has left.
    /// Their numbers bound these.
    pub(crate) fn departed(shared: &Arc<Shared>) -> Option<Self> {
        Self::take(shared, |shared| &shared.departed, usize::MAX)
    }

    /// Counts a request for a file, which is one of those that hold no slot. Returns `None` if
    /// there are as many as allowed of either.
    pub(crate) fn file(shared: &Arc<Shared>, most: usize, observed: usize) -> Option<Self> {
        let mut permit = Self::observed(shared, observed)?;
        // If it is one too many, dropping it decrements both counts.
        permit.is_file = true;
        (shared.file_requests.fetch_add(1, Ordering::Relaxed) < most).then_some(permit)
    }

    /// Counts a file that its server has sent whole, and that its client has not taken yet. Returns
    /// `None` if there are as many as allowed.
    pub(crate) fn kept_file(shared: &Arc<Shared>, most: usize) -> Option<Self> {
        Self::take(shared, |shared| &shared.kept_files, most)
    }

    /// Returns whether it is the permit of a request for a file.
    pub(crate) const fn is_for_file(&self) -> bool {
        self.is_file
    }

    fn take(shared: &Arc<Shared>, count: fn(&Shared) -> &AtomicUsize, most: usize) -> Option<Self> {
        let permit = Self { shared: Arc::clone(shared), count, is_file: false };
        // If it is one too many, dropping it decrements the count.
        (count(shared).fetch_add(1, Ordering::Relaxed) < most).then_some(permit)
    }
}

impl Drop for CountedPermit {
    fn drop(&mut self) {
        (self.count)(&self.shared).fetch_sub(1, Ordering::Relaxed);
        if self.is_file {
            self.shared.file_requests.fetch_sub(1, Ordering::Relaxed);
        }
    }
}
