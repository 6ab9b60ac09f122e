//! A request in the queue, from its arrival to its turn or to its leaving.

use std::marker::PhantomData;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bywash_engine::levels::{LevelId, Ticket};

use crate::error::Refused;
use crate::parker::{Parker, Wakeup};
use crate::request::Request;
use crate::scheduler::PoolScheduler;

/// A thread's request in the queue. The thread may wait several times and do other work in between.
/// Dropping the value leaves the queue.
///
/// The turn may come at any time, and then occupies a slot until the thread checks for it. So the
/// thread should check often, or leave.
pub struct Waiting {
    scheduler: Arc<PoolScheduler>,
    level: LevelId,
    ticket: Ticket,
    parker: Arc<Parker>,
    /// Whether the queue entry is used up: the turn has come, or the pool has refused the request.
    over: bool,
    /// The notification wakes the thread that created the value, so the value must stay on it.
    this_thread: PhantomData<*const ()>,
}

impl Waiting {
    pub(crate) fn new(scheduler: &Arc<PoolScheduler>, level: LevelId) -> Result<Self, Refused> {
        let parker = Arc::new(Parker::here());
        let ticket = scheduler.arrive(level, &parker)?;
        let scheduler = Arc::clone(scheduler);
        Ok(Self { scheduler, level, ticket, parker, over: false, this_thread: PhantomData })
    }

    /// Waits for the turn.
    ///
    /// # Errors
    ///
    /// If the pool is shut down.
    pub fn wait(mut self) -> Result<Request, Refused> {
        let wakeup = self.parker.wait();
        self.end(wakeup)
    }

    /// Waits for the turn, but not longer than until `end`. Returns `None` if it has not come.
    ///
    /// # Panics
    ///
    /// If it has already returned the turn or an error.
    pub fn wait_until(&mut self, end: Instant) -> Option<Result<Request, Refused>> {
        assert!(!self.over, "a turn is had once");
        self.parker.wait_until(end).map(|wakeup| self.end(wakeup))
    }

    /// Leaves the queue because `patience` is over, unless the turn has just come.
    pub(crate) fn leave(mut self, patience: Duration) -> Result<Request, Refused> {
        if self.scheduler.leave(self.level, self.ticket, &self.parker) {
            self.over = true;
            return Err(Refused::TimedOut(patience));
        }
        self.wait()
    }

    fn end(&mut self, wakeup: Wakeup) -> Result<Request, Refused> {
        self.over = true;
        match wakeup {
            Wakeup::Slot => Ok(Request::new(Arc::clone(&self.scheduler), self.ticket, self.level)),
            Wakeup::Closed => Err(Refused::Closed),
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        // Take a turn that has come in the meantime, and end it at once.
        if !self.over && !self.scheduler.leave(self.level, self.ticket, &self.parker) {
            let wakeup = self.parker.wait();
            drop(self.end(wakeup));
        }
    }
}

impl std::fmt::Debug for Waiting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Waiting").field("ticket", &self.ticket).finish_non_exhaustive()
    }
}
