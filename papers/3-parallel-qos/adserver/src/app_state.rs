//! The state that all threads share: the snapshot, the pool, the queue, the counters, and the queue
//! to the writer.
//!
//! Ownership: each server has one `AppState` in an `Arc`. The HTTP thread submits requests, the
//! pool and the workers serve them, and the writer commits. Closing happens once and is never
//! undone.
//!
//! Locks: `snapshot` is held only while its `Arc` is copied or replaced. A thread that changes
//! contracts or slots holds `change_lock` from reading the snapshot until it has committed the
//! change and published the new snapshot. No delivery takes this lock.

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

/// A request on its way to the worker that serves it.
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
    /// The requests to the admin API that wait for a worker.
    pub(crate) queue: Queue<Job>,
    pub(crate) write_queue: WriteQueue,
    pub(crate) key: Key,
    boot: u32,
    serial: AtomicU64,
    /// The keys of the gateway that signs the level of a request.
    gateway: Option<Gateway>,
    /// The random seed from which the seed of each request is derived.
    seed: u64,
    /// A reference to this state, for pages that outlive the call that submits them.
    weak_self: Weak<Self>,
    snapshot: RwLock<Arc<Snapshot>>,
    change_lock: Mutex<()>,
}

impl AppState {
    /// Creates the state from the contents of the database.
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
        // While this snapshot was built, impressions were delivered from the previous one.
        snapshot.refresh(Timestamp::now());
    }

    /// Locks the snapshot against other changes. Poison is ignored: the snapshot is replaced in one
    /// step, so no panic can leave half a change.
    pub(crate) fn lock_changes(&self) -> MutexGuard<'_, ()> {
        self.change_lock.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the token of a new placement of `banner`.
    pub(crate) fn place(&self, banner: &Banner, slot: Option<SlotId>) -> String {
        let serial = self.serial.fetch_add(1, Relaxed);
        self.key.sign(&Placement { boot: self.boot, serial, banner: banner.id, slot })
    }

    /// Requests the next reservation of the banner, if it is due and has not been requested. If the
    /// writer's queue is full, the next tick requests it.
    pub(crate) fn reserve_ahead(&self, banner: &Banner) {
        let is_due = banner.tally.is_short(Timestamp::now()) && banner.tally.ask();
        if is_due && self.write_queue.offer(Write::Reserve(banner.id)).is_err() {
            banner.tally.answer();
        }
    }

    /// Returns the level that the gateway has signed for a request. It is low if the request has no
    /// field, if this server has no keys, or if the field is invalid.
    pub(crate) fn level(&self, field: Option<&[u8]>) -> Level {
        let (Some(gateway), Some(field)) = (&self.gateway, field) else { return Level::Low };
        let level = gateway.level(field).ok().and_then(Level::of);
        self.counters.count_level(level.is_some());
        level.unwrap_or_default()
    }

    /// Returns the random numbers for one request.
    pub(crate) fn random_stream(&self) -> RandomStream {
        /// An odd factor, with which no two requests get the same seed.
        const STEP: u64 = 0x9E37_79B9_7F4A_7C15;
        let serial = self.serial.fetch_add(1, Relaxed);
        RandomStream::seeded(self.seed.wrapping_add(serial.wrapping_mul(STEP)))
    }

    /// Counts a received request, and returns both ends of its reply channel.
    pub(crate) fn receive(&self, kind: RequestKind) -> (ReplyHandle, ReplyReceiver<Answer>) {
        let (reply, answer) = reply_channel();
        self.counters.count_received(kind);
        (ReplyHandle { reply, kind, since: Instant::now() }, answer)
    }

    /// Submits a page to the pool, which calls `look` on the page's turn.
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

    /// Sends the answer, and counts the outcome of the request.
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

    /// Counts a request whose client left before work on it began.
    pub(crate) fn skip(&self, handle: &ReplyHandle) {
        self.counters.count_outcome(handle.kind, Outcome::Orphaned);
    }

    /// Accepts no more requests, and refuses the waiting ones.
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
/// was full or closed, it is refused. If it is dropped later, because something panicked, it has
/// failed.
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
        // A client that has left would not see the banners.
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
