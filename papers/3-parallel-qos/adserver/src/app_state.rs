//! The state that all threads share: the snapshot, the pool, the queue of the admin API, the
//! counters, and the queue to the writer.
//!
//! Each server has one `AppState` in an `Arc`. The HTTP thread submits requests, the pool and the
//! workers serve them, and the writer thread commits. A server is closed once and never opened
//! again.
//!
//! Locks: `snapshot` is held only while its `Arc` is copied or replaced. A thread that changes
//! contracts or slots holds `change_lock` from the reading of the snapshot until it has committed
//! the change and published the new snapshot. The delivery of an impression never
//! takes `change_lock`.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, Weak};
use std::time::Instant;

use bywash_levels::{Gateway, Pool, Request};
use bywash_site::{Queue, Refusal, ReplyReceiver, reply_channel};

use crate::answer::{Answer, ReplyHandle};
use crate::counters::{Counters, Outcome, RequestKind};
use crate::ids::SlotId;
use crate::request::ParsedRequest;
use crate::serve::RandomStream;
use crate::snapshot::{Banner, Register, Snapshot};
use crate::store::{Write, WriteQueue};
use crate::token::{Key, Placement};
use crate::values::Timestamp;
use crate::{Level, Options, Selection, Stats, pool};

/// A request to the admin API that waits for a worker.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) request: ParsedRequest,
    pub(crate) handle: ReplyHandle,
}

/// The state of a running ad server.
#[derive(Debug)]
pub(crate) struct AppState {
    pub(crate) options: Options,
    pub(crate) counters: Counters,
    pub(crate) pool: Pool,
    /// The queue of requests to the admin API that wait for a worker.
    pub(crate) queue: Queue<Job>,
    pub(crate) write_queue: WriteQueue,
    pub(crate) key: Key,
    /// The number of this start of the server, for the tokens of placements.
    boot: u32,
    serial: AtomicU64,
    /// The keys of the gateway that signs the level of a request; `None` if no level is trusted.
    gateway: Option<Gateway>,
    /// The random seed of this server, from which the seed of each request is derived.
    seed: u64,
    /// A reference to this state itself, for pages that outlive the call that submits them.
    weak_self: Weak<Self>,
    snapshot: RwLock<Arc<Snapshot>>,
    change_lock: Mutex<()>,
}

impl AppState {
    /// Creates the state from the contents of the database, and publishes the first snapshot.
    pub(crate) fn new(
        options: Options,
        register: Register,
        (key, boot): (Key, u32),
        write_queue: WriteQueue,
        (pool, seed): (Pool, u64),
        gateway: Option<Gateway>,
    ) -> Arc<Self> {
        let snapshot =
            Snapshot::new(register, options.selection == Selection::Wheels, Timestamp::now());
        Arc::new_cyclic(|weak_self| Self {
            weak_self: Weak::clone(weak_self),
            pool,
            queue: Queue::new(options.backlog),
            counters: Counters::default(),
            write_queue,
            key,
            boot,
            serial: AtomicU64::new(0),
            gateway,
            seed,
            snapshot: RwLock::new(Arc::new(snapshot)),
            change_lock: Mutex::new(()),
            options,
        })
    }

    /// Returns the current snapshot.
    pub(crate) fn snapshot(&self) -> Arc<Snapshot> {
        Arc::clone(&self.snapshot.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Replaces the snapshot. The caller must hold [`AppState::lock_changes`].
    pub(crate) fn publish(&self, register: Register) {
        let has_trees = self.options.selection == Selection::Wheels;
        let snapshot = Arc::new(Snapshot::new(register, has_trees, Timestamp::now()));
        *self.snapshot.write().unwrap_or_else(PoisonError::into_inner) = Arc::clone(&snapshot);
        // Apply the schedule again, because impressions were delivered from the previous snapshot
        // while this one was built.
        snapshot.refresh(Timestamp::now());
    }

    /// Locks the snapshot against other changes. A poisoned lock is accepted: the snapshot is
    /// replaced in one step, so that a panic cannot leave half a change.
    pub(crate) fn lock_changes(&self) -> MutexGuard<'_, ()> {
        self.change_lock.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Creates a new placement of `banner`, and returns its signed token.
    pub(crate) fn place(&self, banner: &Banner, slot: Option<SlotId>) -> String {
        let serial = self.serial.fetch_add(1, Relaxed);
        self.key.sign(&Placement { boot: self.boot, serial, banner: banner.id, slot })
    }

    /// Asks the writer to reserve the banner's next impressions, if a reservation is due and not
    /// yet requested. If the writer's queue is full, the writer makes the reservation at its next
    /// tick.
    pub(crate) fn reserve_ahead(&self, banner: &Banner) {
        let is_due = banner.tally.is_short(Timestamp::now()) && banner.tally.mark_requested();
        if is_due && self.write_queue.offer(Write::Reserve(banner.id)).is_err() {
            banner.tally.unmark_requested();
        }
    }

    /// Returns the level of a request from its header field, which the gateway has signed. The
    /// level is low if the request has no such field, if this server has no keys, or if the field
    /// is invalid.
    pub(crate) fn level(&self, field: Option<&[u8]>) -> Level {
        let (Some(gateway), Some(field)) = (&self.gateway, field) else { return Level::Low };
        let level = gateway.level(field).ok().and_then(Level::of);
        self.counters.count_level(level.is_some());
        level.unwrap_or_default()
    }

    /// Returns the stream of random numbers for one request.
    pub(crate) fn random_stream(&self) -> RandomStream {
        /// An odd factor, so that no two requests get the same seed.
        const STEP: u64 = 0x9E37_79B9_7F4A_7C15;
        let serial = self.serial.fetch_add(1, Relaxed);
        RandomStream::seeded(self.seed.wrapping_add(serial.wrapping_mul(STEP)))
    }

    /// Counts a received request, and returns the sending and the receiving end of its reply
    /// channel.
    pub(crate) fn receive(&self, kind: RequestKind) -> (ReplyHandle, ReplyReceiver<Answer>) {
        let (reply, answer) = reply_channel();
        self.counters.count_received(kind);
        (ReplyHandle { reply, kind, since: Instant::now() }, answer)
    }

    /// Submits a page to the pool, which calls `look` when it is the page's turn. Returns an error
    /// if the pool is full or closed.
    pub(crate) fn submit_page(
        &self,
        level: Level,
        handle: ReplyHandle,
        look: impl FnOnce(&Self, &mut Request) -> Answer + Send + 'static,
    ) -> Result<(), Refusal> {
        let Some(state) = self.weak_self.upgrade() else { return Err(Refusal::Closing) };
        let mut page = PageTask { state, handle: Some(handle), has_begun: false };
        let submitted = self.pool.submit(level.name(), move |turn| page.serve(look, turn));
        submitted.map_err(|_| Refusal::Busy)
    }

    /// Counts the outcome of the request, and sends `answer` to the client.
    pub(crate) fn answer(&self, handle: ReplyHandle, answer: Answer) {
        let ReplyHandle { reply, kind, since } = handle;
        let outcome = match answer {
            Answer::Failed => Outcome::Failed,
            Answer::Busy => Outcome::Refused,
            Answer::Json(..) | Answer::Go(_) | Answer::Error(_) => {
                Outcome::Answered(since.elapsed())
            }
        };
        let is_gone = reply.send(answer).is_some();
        self.counters.count_outcome(kind, if is_gone { Outcome::Orphaned } else { outcome });
    }

    /// Counts a request that was not served because its client had left.
    pub(crate) fn skip(&self, handle: &ReplyHandle) {
        self.counters.count_outcome(handle.kind, Outcome::Orphaned);
    }

    /// Closes the server: later requests are not accepted, and waiting ones are refused.
    pub(crate) fn close(&self) {
        for job in self.queue.close() {
            self.refuse(&job.handle);
        }
        self.pool.close();
    }

    /// Reads all statistics.
    pub(crate) fn read_stats(&self) -> Stats {
        let counters = &self.counters;
        let levels = Level::ALL.map(|level| (level, counters.requests(RequestKind::Ad(level))));
        let (clicks_counted, clicks_repeated) = counters.clicks();
        let (turns, goal, waiting) = pool::read_stats(&self.pool);
        Stats {
            levels: levels.into(),
            clicks: counters.requests(RequestKind::Click),
            office: counters.requests(RequestKind::Admin),
            selections: counters.selections(self.options.selection),
            clicks_counted,
            clicks_repeated,
            turns,
            goal,
            queue_length: waiting + self.queue.length(),
            running: counters.running_now(),
            levels_refused: counters.levels_refused(),
            departed: counters.departed_so_far(),
            threads: self.options.threads,
            backlog: self.options.backlog,
        }
    }

    pub(crate) fn refuse(&self, handle: &ReplyHandle) -> Refusal {
        self.counters.count_outcome(handle.kind, Outcome::Refused);
        Refusal::Busy
    }
}

/// A page from its submission to its answer. If it is dropped before it has begun, because the pool
/// is full or closed, the request is refused. If it is dropped later, because of a panic, the
/// request has failed.
struct PageTask {
    state: Arc<AppState>,
    handle: Option<ReplyHandle>,
    has_begun: bool,
}

impl PageTask {
    fn serve(&mut self, look: impl FnOnce(&AppState, &mut Request) -> Answer, turn: &mut Request) {
        self.has_begun = true;
        let _running = self.state.counters.run();
        let is_gone = |handle: &ReplyHandle| handle.reply.left().is_some();
        // Do not select banners for a client that has left, because nobody would see them.
        let answer = (!self.handle.as_ref().is_some_and(is_gone)).then(|| look(&self.state, turn));
        match (self.handle.take(), answer) {
            (Some(handle), Some(answer)) => self.state.answer(handle, answer),
            (Some(handle), None) => self.state.skip(&handle),
            (None, _) => {}
        }
    }
}

impl Drop for PageTask {
    fn drop(&mut self) {
        match self.handle.take() {
            Some(handle) if self.has_begun => self.state.answer(handle, Answer::Failed),
            Some(handle) => drop(self.state.refuse(&handle)),
            None => {}
        }
    }
}
