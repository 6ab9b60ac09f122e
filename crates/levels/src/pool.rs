//! The public interface of a pool.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bywash_engine::levels::{LevelId, Load};

use crate::error::Refused;
use crate::request::Request;
use crate::scheduler::PoolScheduler;
use crate::stats::{GoalStats, LevelStats, Stats};
use crate::waiting::Waiting;

/// A pool of threads with service levels. All clones are handles of one pool. When the last clone
/// is dropped, the pool accepts no more requests, and its threads end with the last request.
#[derive(Clone)]
pub struct Pool {
    open: Arc<Open>,
}

/// A guard that closes the pool when the last clone of the pool is dropped.
struct Open(Arc<PoolScheduler>);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.close();
    }
}

impl Pool {
    pub(crate) fn new(scheduler: Arc<PoolScheduler>) -> Self {
        Self { open: Arc::new(Open(scheduler)) }
    }

    /// Queues a request of this thread in a level, and waits until the request begins.
    ///
    /// A thread must not have two requests in one pool at a time. While it waits for the second,
    /// the first occupies a slot without using it, and two such threads may wait for each other.
    ///
    /// # Errors
    ///
    /// If there is no such level, its queue is full, or the pool is closed.
    pub fn request(&self, level: &str) -> Result<Request, Refused> {
        self.line_up(level)?.wait()
    }

    /// Queues a request of this thread in a level, and waits until it begins, for at most
    /// `patience`. See [`Pool::request`].
    ///
    /// # Errors
    ///
    /// The errors of [`Pool::request`], and [`Refused::TimedOut`].
    pub fn request_within(&self, level: &str, patience: Duration) -> Result<Request, Refused> {
        let mut waiting = self.line_up(level)?;
        match Instant::now().checked_add(patience) {
            Some(end) => waiting.wait_until(end).unwrap_or_else(|| waiting.leave(patience)),
            None => waiting.wait(),
        }
    }

    /// Queues a request of this thread in a level without waiting. The thread may wait for its slot
    /// later. Dropping the value removes the request from the queue.
    ///
    /// # Errors
    ///
    /// The errors of [`Pool::request`].
    pub fn line_up(&self, level: &str) -> Result<Waiting, Refused> {
        Waiting::new(self.scheduler(), self.scheduler().level(level)?)
    }

    /// Submits a job, which a thread of the pool runs when the request gets its slot. If the job
    /// panics, only this request fails.
    ///
    /// # Errors
    ///
    /// The errors of [`Pool::request`].
    pub fn submit<F>(&self, level: &str, job: F) -> Result<(), Refused>
    where
        F: FnOnce(&mut Request) + Send + 'static,
    {
        let run = |scheduler: &Arc<PoolScheduler>, ticket, level| {
            Request::run(scheduler, ticket, level, job);
        };
        self.scheduler().submit(self.scheduler().level(level)?, Box::new(run))
    }

    /// Closes the pool for all its clones. It accepts no more requests, refuses those that wait,
    /// and drops submitted jobs that have not begun. Requests that have begun continue.
    pub fn close(&self) {
        self.scheduler().close();
    }

    /// Waits until no request waits or runs in the pool. After [`Pool::close`], only requests that
    /// had begun are left. If [`Pool::has_request_here`], this function waits for its own thread,
    /// and does not return.
    pub fn wait_until_empty(&self) {
        self.scheduler().wait_until_empty();
    }

    /// Waits until the pool is empty, or until the time `end`. Returns whether the pool is empty.
    pub fn is_empty_by(&self, end: Instant) -> bool {
        self.scheduler().is_empty_by(end)
    }

    /// Returns whether the calling thread has a request in the pool, or runs a job or a task of the
    /// pool. A thread has a request that it has queued or begun, unless another thread has opened a
    /// scope in that request since.
    pub fn has_request_here(&self) -> bool {
        self.scheduler().has_request_here()
    }

    /// Returns a snapshot of the pool's statistics.
    pub fn stats(&self) -> Stats {
        let scheduler = self.scheduler();
        let state = scheduler.lock();
        let loads: Vec<_> =
            (0..scheduler.names.len()).map(|index| state.levels.load(LevelId(index))).collect();
        let standing = state.levels.standing(scheduler.now());
        let tally = state.tally.clone();
        // The lock is released here: the rest takes longer than any thread should wait for a slot.
        drop(state);
        let level = |(index, (name, load)): (usize, (&String, Load))| LevelStats {
            waiting: load.waiting,
            running: load.running,
            threads: load.threads,
            share: load.share,
            ..tally.level(LevelId(index), name)
        };
        let levels = scheduler.names.iter().zip(loads).enumerate().map(level).collect();
        let goal = standing.map(|standing| GoalStats {
            verdict: standing.verdict,
            measured: standing.measured,
            effort: standing.effort,
        });
        Stats { levels, goal }
    }

    fn scheduler(&self) -> &Arc<PoolScheduler> {
        &self.open.0
    }
}

impl std::fmt::Debug for Pool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pool").field("levels", &self.scheduler().names).finish_non_exhaustive()
    }
}
