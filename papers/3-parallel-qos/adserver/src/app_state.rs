//! What all threads share: the snapshot, the pool, the queue, the totals, the way to the writer.
//!
//! Ownership: one `AppState` in an `Arc` per server. The HTTP thread pushes, pool and workers pop, the writer commits;
//! closing happens once and is never undone.
//!
//! Locks: `snapshot` is held for a copy of its `Arc`. `change_lock` is held by whoever changes contracts or slots,
//! from the look at the snapshot to the new one, and while the change is committed; no delivery takes it.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, Weak};
use std::time::Instant;

use bywash_levels::{Gateway, Pool, Request};
use bywash_site::{Queue, Refusal, ReplyReceiver, reply_channel};

use crate::answer::{Answer, ReplyHandle};
use crate::counters::{Counters, Kind, Outcome};
use crate::ids::SlotId;
use crate::request::ParsedRequest;
use crate::serve::RandomStream;
use crate::snapshot::{Banner, Register, Snapshot};
use crate::store::{Write, WriteQueue};
use crate::token::{Key, Placement};
use crate::values::Timestamp;
use crate::{Level, Options, Selection, Stats, pool};

/// A request on its way to whoever serves it.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) request: ParsedRequest,
    pub(crate) handle: ReplyHandle,
}

/// A running ad server as its threads see it.
#[derive(Debug)]
pub(crate) struct AppState {
    pub(crate) options: Options,
    pub(crate) counters: Counters,
    pub(crate) pool: Pool,
    /// Of the admin API.
    pub(crate) queue: Queue<Job>,
    pub(crate) write_queue: WriteQueue,
    pub(crate) key: Key,
    boot: u32,
    serial: AtomicU64,
    /// Who says which level a request has.
    gateway: Option<Gateway>,
    /// What the random numbers of requests begin with.
    seed: u64,
    /// Itself, for who works on its own.
    weak_self: Weak<Self>,
    snapshot: RwLock<Arc<Snapshot>>,
    change_lock: Mutex<()>,
}

impl AppState {
    /// The state of an open ad server with what the database knows.
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

    /// The snapshot of this moment.
    pub(crate) fn snapshot(&self) -> Arc<Snapshot> {
        Arc::clone(&self.snapshot.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Puts a snapshot in place of the one before. Only for who holds [`AppState::lock_changes`].
    pub(crate) fn publish(&self, register: Register) {
        let has_trees = self.options.selection == Selection::Wheels;
        let snapshot = Arc::new(Snapshot::new(register, has_trees, Timestamp::now()));
        *self.snapshot.write().unwrap_or_else(PoisonError::into_inner) = Arc::clone(&snapshot);
        // What was delivered from the one before while this one was made.
        snapshot.refresh(Timestamp::now());
    }

    /// The right to change the snapshot. (What it protects is replaced in one step: poison means nothing.)
    pub(crate) fn lock_changes(&self) -> MutexGuard<'_, ()> {
        self.change_lock.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Names a banner that was placed.
    pub(crate) fn place(&self, banner: &Banner, slot: Option<SlotId>) -> String {
        let serial = self.serial.fetch_add(1, Relaxed);
        self.key.sign(&Placement { boot: self.boot, serial, banner: banner.id, slot })
    }

    /// Asks for the banner's next reservation, if that is due and nobody has. One that finds the writer's queue full is
    /// asked for at the next tick.
    pub(crate) fn reserve_ahead(&self, banner: &Banner) {
        let is_due = banner.tally.is_short(Timestamp::now()) && banner.tally.ask();
        if is_due && self.write_queue.offer(Write::Reserve(banner.id)).is_err() {
            banner.tally.answer();
        }
    }

    /// The level that the gateway says a request has: low where it says none, or nobody may.
    pub(crate) fn level(&self, field: Option<&[u8]>) -> Level {
        let (Some(gateway), Some(field)) = (&self.gateway, field) else { return Level::Low };
        let level = gateway.level(field).ok().and_then(Level::of);
        self.counters.count_level(level.is_some());
        level.unwrap_or_default()
    }

    /// Random numbers for one request.
    pub(crate) fn random_stream(&self) -> RandomStream {
        /// Odd: no two requests have the same.
        const STEP: u64 = 0x9E37_79B9_7F4A_7C15;
        let serial = self.serial.fetch_add(1, Relaxed);
        RandomStream::seeded(self.seed.wrapping_add(serial.wrapping_mul(STEP)))
    }

    /// A request has come.
    pub(crate) fn receive(&self, kind: Kind) -> (ReplyHandle, ReplyReceiver<Answer>) {
        let (reply, answer) = reply_channel();
        self.counters.count_received(kind);
        (ReplyHandle { reply, kind, since: Instant::now() }, answer)
    }

    /// A page's turn in the pool.
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

    /// Answers, and counts how the request ended.
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

    /// The client left before anybody had begun.
    pub(crate) fn skip(&self, handle: &ReplyHandle) {
        self.counters.count_outcome(handle.kind, Outcome::Orphaned);
    }

    /// Takes no more requests, and turns away the waiting ones.
    pub(crate) fn close(&self) {
        for job in self.queue.close() {
            self.refuse(&job.handle);
        }
        self.pool.close();
    }

    /// A reading of everything.
    pub(crate) fn read_stats(&self) -> Stats {
        let counters = &self.counters;
        let levels = Level::ALL.map(|level| (level, counters.requests(Kind::Ad(level))));
        let (clicks_counted, clicks_repeated) = counters.clicks();
        let (turns, goal, waiting) = pool::read_stats(&self.pool);
        Stats {
            levels: levels.into(),
            clicks: counters.requests(Kind::Click),
            office: counters.requests(Kind::Admin),
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

/// A page, from its place in the queue to its answer. Dropped before it has begun, because the pool was full or was
/// closed, it is refused; dropped later, because something panicked, it has failed.
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
        // Nobody would see the banners of who has left.
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
