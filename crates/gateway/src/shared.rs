//! The state that all threads of a gateway share.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bywash_control::Overrides;
use tokio::sync::watch;

use crate::connections::Connections;
use crate::driver::Driver;
use crate::elephants::Elephants;
use crate::identity::appointments::Appointments;
use crate::identity::populations::Appearances;
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

/// The state that all threads of one gateway share, behind an `Arc`.
pub(crate) struct Shared {
    pub(crate) driver: Arc<Driver>,
    /// The state of the fleet, for operators.
    #[cfg(feature = "fleet")]
    pub(crate) fleet: bywash_fleet_nats::Board,
    pub(crate) metrics: Metrics,
    pub(crate) request_log: RequestLog,
    /// The findings about elephants, and the rules that throttle them.
    pub(crate) elephants: Elephants,
    /// The recorder of the history, one row per second.
    pub(crate) history_recorder: HistoryRecorder,
    /// The audit log: decisions of operators, with author and reason.
    pub(crate) audit: Audit,
    /// The thread and queue that write decisions to `state.directory`.
    pub(crate) state_writer: StateWriter,
    /// The overrides of the configuration file. Every change of the settings takes this lock.
    overrides: Mutex<Stored<Overrides>>,
    /// The reason why the last reload was refused; `None` if it succeeded.
    reload_refused: Mutex<Option<String>>,
    /// Whether the process was started bypassed. It changes only under the lock of the overrides.
    pub(crate) starts_bypassed: AtomicBool,
    /// The settings in force. Each worker has a copy, and is notified of changes.
    settings: watch::Sender<Arc<Settings>>,
    /// Whether the gateway is bypassed, so that it takes no decisions.
    bypass: AtomicBool,
    /// Whether each client connection is closed after its present answer.
    pub(crate) is_draining: AtomicBool,
    /// Whether `/readyz` answers 503, because the gateway will stop.
    pub(crate) is_leaving: AtomicBool,
    /// The number of worker threads that serve clients now.
    pub(crate) workers: AtomicUsize,
    worker_count: usize,
    pub(crate) connections: Connections,
    /// The number of streams, which count against `client_limits.streams` instead of the
    /// concurrency limit.
    pub(crate) streams: AtomicUsize,
    /// The number of requests that run without a slot, limited by `client_limits.observed`.
    pub(crate) observed: AtomicUsize,
    /// The number of requests that do not wait for a slot yet, because their bodies are still read.
    pub(crate) uploads: AtomicUsize,
    /// The number of requests that hold a slot or a permit although their clients have left.
    pub(crate) departed: AtomicUsize,
    /// The number of requests for files that hold a permit instead of a slot.
    pub(crate) file_requests: AtomicUsize,
    /// The number of files that servers have sent completely and clients have not taken completely.
    pub(crate) kept_files: AtomicUsize,
    /// When refused agents should come again.
    pub(crate) appointments: Appointments,
    /// How the requests of populations look.
    pub(crate) appearances: Appearances,
    /// The table of targets that are known to be files.
    pub(crate) files: StaticFiles,
    faults: FaultLog,
    /// The memory that all clients together make the gateway hold.
    pub(crate) memory: Arc<Memory>,
    /// The key for hashes of values that clients choose, such as cookies and addresses. Clients
    /// cannot know it, so they cannot construct values with the same hash.
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
            #[cfg(feature = "fleet")]
            fleet: bywash_fleet_nats::Board::default(),
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
            appointments: Appointments::default(),
            appearances: Appearances::default(),
            files: StaticFiles::default(),
            observed: AtomicUsize::new(0),
            faults: FaultLog::default(),
            secret,
            names: Names::new(),
            #[cfg(test)]
            traps: crate::process::panics::Traps::default(),
        }
    }

    /// Locks the overrides, to read them or to change them together with the settings in force.
    pub(crate) fn overrides(&self) -> MutexGuard<'_, Stored<Overrides>> {
        self.overrides.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records the result of a reload. `refused` is the reason if the reload was refused.
    pub(crate) fn reloaded(&self, refused: Option<String>) {
        self.metrics.reloaded(refused.is_none());
        *self.reload_refused.lock().unwrap_or_else(PoisonError::into_inner) = refused;
    }

    /// Returns the reason why the last reload was refused. Returns `None` if it succeeded.
    pub(crate) fn reload_refused(&self) -> Option<String> {
        self.reload_refused.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the settings in force now.
    pub(crate) fn settings(&self) -> Arc<Settings> {
        Arc::clone(&self.settings.borrow())
    }

    /// Returns a receiver of the settings in force now and of all later ones.
    pub(crate) fn changes(&self) -> watch::Receiver<Arc<Settings>> {
        self.settings.subscribe()
    }

    pub(crate) fn put_in_force(&self, settings: Arc<Settings>) {
        self.memory.set_budget(memory::of_this_process(&settings.config));
        self.settings.send_replace(settings);
    }

    /// Records the conclusion about a target that may be a file. Counts a file that it displaces.
    pub(crate) fn note_file(&self, file: FileKey, shows: Shows) {
        if self.files.note(file, shows) {
            self.metrics.file_forgotten();
        }
    }

    /// Returns a name for a request. It is unique in this process, and clients cannot predict it.
    pub(crate) fn request_name(&self) -> u64 {
        self.names.next()
    }

    /// Returns whether every worker serves clients and the gateway is not about to stop.
    pub(crate) fn is_ready(&self) -> bool {
        let workers = self.workers.load(Ordering::Relaxed);
        !self.is_leaving.load(Ordering::Relaxed) && workers == self.worker_count
    }

    /// Counts and logs a request that could not be sent upstream because of a local fault.
    pub(crate) fn local_fault(&self, fault: LocalFault) {
        self.metrics.local_fault(fault);
        self.faults.note(fault, "a request was answered with 503", self.driver.now());
    }

    /// Counts and logs a client connection that could not be accepted.
    pub(crate) fn accept_failed(&self, error: &std::io::Error) {
        let fault = LocalFault::of(error);
        self.metrics.accept_failed(fault);
        if let Some(fault) = fault {
            self.faults.note(fault, "a client's connection was not accepted", self.driver.now());
        }
    }

    /// Returns the number of worker threads that the gateway was started with.
    pub(crate) const fn worker_count(&self) -> usize {
        self.worker_count
    }

    /// Turns the bypass on or off. When it is on, the engine no longer stops running requests.
    /// Requests that already wait are not released.
    pub(crate) fn set_bypass(&self, on: bool) {
        // The bypass and the engine's permission to stop requests are set under the engine's lock,
        // so that two concurrent changes cannot mix.
        self.driver.may_stop(!on, || self.bypass.store(on, Ordering::Relaxed));
    }

    pub(crate) fn is_bypassed(&self) -> bool {
        self.bypass.load(Ordering::Relaxed)
    }
}

/// An entry in one of the counts of requests without a slot. Dropping it decrements the count.
pub(crate) struct CountedPermit {
    shared: Arc<Shared>,
    count: fn(&Shared) -> &AtomicUsize,
    /// Whether the entry also counts in `file_requests`.
    is_file: bool,
}

impl CountedPermit {
    /// Counts a stream: a WebSocket or a response of server-sent events. Returns `None` if `most`
    /// streams exist already.
    pub(crate) fn stream(shared: &Arc<Shared>, most: usize) -> Option<Self> {
        Self::take(shared, |shared| &shared.streams, most)
    }

    /// Counts a request that is only observed or bypassed. Returns `None` if `most` such requests
    /// run already.
    pub(crate) fn observed(shared: &Arc<Shared>, most: usize) -> Option<Self> {
        Self::take(shared, |shared| &shared.observed, most)
    }

    /// Counts a request whose body is read before the request waits for a slot. There is no limit
    /// of its own, because the number of client connections bounds these requests.
    pub(crate) fn upload(shared: &Arc<Shared>) -> Option<Self> {
        Self::take(shared, |shared| &shared.uploads, usize::MAX)
    }

    /// Counts a request that holds a slot or a permit although its client has left. There is no
    /// limit of its own, because the slots and permits bound these requests.
    pub(crate) fn departed(shared: &Arc<Shared>) -> Option<Self> {
        Self::take(shared, |shared| &shared.departed, usize::MAX)
    }

    /// Counts a request for a file in two counts: that of requests for files, and that of requests
    /// without a slot. Returns `None` if there are already `most` of the former or `observed` of
    /// the latter.
    pub(crate) fn file(shared: &Arc<Shared>, most: usize, observed: usize) -> Option<Self> {
        let mut permit = Self::observed(shared, observed)?;
        // If this is one too many, dropping the permit decrements both counts.
        permit.is_file = true;
        (shared.file_requests.fetch_add(1, Ordering::Relaxed) < most).then_some(permit)
    }

    /// Counts a file that its server has sent completely and that its client has not taken yet.
    /// Returns `None` if there are `most` such files already.
    pub(crate) fn kept_file(shared: &Arc<Shared>, most: usize) -> Option<Self> {
        Self::take(shared, |shared| &shared.kept_files, most)
    }

    /// Returns whether this is the permit of a request for a file.
    pub(crate) const fn is_for_file(&self) -> bool {
        self.is_file
    }

    fn take(shared: &Arc<Shared>, count: fn(&Shared) -> &AtomicUsize, most: usize) -> Option<Self> {
        let permit = Self { shared: Arc::clone(shared), count, is_file: false };
        // If this is one too many, dropping the permit decrements the count.
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
