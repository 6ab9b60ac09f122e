//! The public interface of the pool.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bywash_engine::levels::{LevelId, Load};

use crate::error::Refused;
use crate::request::Request;
use crate::scheduler::PoolScheduler;
use crate::stats::{GoalStats, LevelStats, Stats};
use crate::waiting::Waiting;

/// A pool of threads with service levels. Clones are the same pool. When the last clone is dropped,
/// the pool accepts no more requests, and its threads end with the last request.
#[derive(Clone)]
pub struct Pool {
    open: Arc<Open>,
}

/// Closes the pool when the last clone is dropped.
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

    /// Waits for this thread's turn in a level.
    ///
    /// A thread must not have two turns in the same pool. One that has a turn and waits for another
    /// occupies a slot without using it, and two such threads may wait for each other.
    ///
    /// # Errors
    ///
    /// If there is no such level, its queue is full, or the pool is shut down.
    pub fn request(&self, level: &str) -> Result<Request, Refused> {
        self.line_up(level)?.wait()
    }

    /// Works like [`Pool::request`], but waits at most for `patience`.
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

    /// Queues a request of this thread. The thread waits when it likes, and leaves the queue by
    /// dropping the value.
    ///
    /// # Errors
    ///
    /// The errors of [`Pool::request`].
    pub fn line_up(&self, level: &str) -> Result<Waiting, Refused> {
        Waiting::new(self.scheduler(), self.scheduler().level(level)?)
    }

    /// Submits a job, which a thread of the pool runs when its turn comes. If it panics, only this
    /// request fails.
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

    /// Shuts down the pool for all its clones. It accepts no more requests, refuses those that
    /// wait, and drops submitted jobs that have not begun. Requests that have begun continue.
    pub fn close(&self) {
        self.scheduler().close();
    }

    /// Waits until the pool is empty. After [`Pool::close`], it waits for the requests that had
    /// begun.
    pub fn wait_until_empty(&self) {
        self.scheduler().wait_until_empty();
    }

    /// Waits until the pool is empty, but not longer than until `end`. Returns whether it is empty.
    pub fn is_empty_by(&self, end: Instant) -> bool {
        self.scheduler().is_empty_by(end)
    }

    /// Returns the statistics of the pool.
    pub fn stats(&self) -> Stats {
        let scheduler = self.scheduler();
        let state = scheduler.lock();
        let loads: Vec<_> =
            (0..scheduler.names.len()).map(|index| state.levels.load(LevelId(index))).collect();
        let standing = state.levels.standing(scheduler.now());
        let tally = state.tally.clone();
        // Release the lock: the rest takes longer than any thread should wait for a slot.
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
