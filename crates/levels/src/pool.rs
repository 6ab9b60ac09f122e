//! The pool, from outside.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bywash_engine::levels::{LevelId, Load};

use crate::builder::Builder;
use crate::desk::Desk;
use crate::error::Refused;
use crate::request::Request;
use crate::stats::{GoalStats, LevelStats, Stats};
use crate::waiting::Waiting;

/// A pool of threads with levels. Clones are the same pool; when the last is dropped no more requests come in, and the
/// threads end with the last request.
#[derive(Clone)]
pub struct Pool {
    open: Arc<Open>,
}

/// Dropped with the last clone.
struct Open(Arc<Desk>);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.close();
    }
}

impl Pool {
    /// A pool on so many threads: one more than there are processors for it
    /// ([`suggested_threads`](crate::suggested_threads)).
    pub fn builder(threads: u32) -> Builder {
        Builder::new(threads)
    }

    pub(crate) fn new(desk: Arc<Desk>) -> Self {
        Self { open: Arc::new(Open(desk)) }
    }

    /// Waits for this thread's turn in a level. A thread that has a turn and waits for another in the same pool takes a
    /// slot out of use, and two of them may wait for each other: one request, one turn.
    ///
    /// # Errors
    ///
    /// If there is no such level, its queue is full, or the pool is shut down.
    pub fn request(&self, level: &str) -> Result<Request, Refused> {
        self.line_up(level)?.wait()
    }

    /// As [`Pool::request`], and waits for no longer than that.
    ///
    /// # Errors
    ///
    /// Those, or [`Refused::TimedOut`].
    pub fn request_within(&self, level: &str, patience: Duration) -> Result<Request, Refused> {
        let mut waiting = self.line_up(level)?;
        match Instant::now().checked_add(patience) {
            Some(end) => waiting.wait_until(end).unwrap_or_else(|| waiting.leave(patience)),
            None => waiting.wait(),
        }
    }

    /// Takes a place in line for this thread, which waits when it likes, and leaves by dropping it.
    ///
    /// # Errors
    ///
    /// As [`Pool::request`].
    pub fn line_up(&self, level: &str) -> Result<Waiting, Refused> {
        Waiting::new(self.desk(), self.desk().level(level)?)
    }

    /// Has a request run by a thread of the pool when its turn comes. If it panics, it alone has failed.
    ///
    /// # Errors
    ///
    /// As [`Pool::request`].
    pub fn submit<F>(&self, level: &str, job: F) -> Result<(), Refused>
    where
        F: FnOnce(&mut Request) + Send + 'static,
    {
        self.desk().hand_in(self.desk().level(level)?, Box::new(job))
    }

    /// No more requests come in: those that wait are refused, what was handed in and has not begun is dropped. Those that
    /// have begun go on. The pool is shut down for all its clones.
    pub fn close(&self) {
        self.desk().close();
    }

    /// Waits until all who are in the pool have left it: after [`Pool::close`], those that had begun.
    pub fn wait_until_empty(&self) {
        self.desk().wait_until_empty();
    }

    /// The same, until then at most: whether nobody is in it.
    pub fn is_empty_by(&self, end: Instant) -> bool {
        self.desk().is_empty_by(end)
    }

    /// What it has done and does.
    pub fn stats(&self) -> Stats {
        let desk = self.desk();
        let state = desk.lock();
        let loads: Vec<_> =
            (0..desk.names.len()).map(|index| state.levels.load(LevelId(index))).collect();
        let standing = state.levels.standing(desk.now());
        let tally = state.tally.clone();
        // What follows takes longer than anybody should wait for a slot.
        drop(state);
        let level = |(index, (name, load)): (usize, (&String, Load))| LevelStats {
            waiting: load.waiting,
            running: load.running,
            threads: load.threads,
            share: load.share,
            ..tally.level(LevelId(index), name)
        };
        let levels = desk.names.iter().zip(loads).enumerate().map(level).collect();
        let goal = standing.map(|standing| GoalStats {
            verdict: standing.verdict,
            measured: standing.measured,
            effort: standing.effort,
        });
        Stats { levels, goal }
    }

    fn desk(&self) -> &Arc<Desk> {
        &self.open.0
    }
}

impl std::fmt::Debug for Pool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pool").field("levels", &self.desk().names).finish_non_exhaustive()
    }
}
