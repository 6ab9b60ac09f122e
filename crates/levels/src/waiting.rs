//! A request in the queue, from its arrival until it begins or leaves.

use std::marker::PhantomData;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bywash_engine::levels::{LevelId, Ticket};

use crate::error::Refused;
use crate::parker::{Parker, Wakeup};
use crate::request::Request;
use crate::scheduler::PoolScheduler;

/// A request of a thread in the queue of a level. The thread may wait for its slot several times,
/// and do other work in between. Dropping the value removes the request from the queue.
///
/// The request may get its slot at any time, and then occupies it until the thread checks. So the
/// thread should check often, or drop the value.
pub struct Waiting {
    scheduler: Arc<PoolScheduler>,
    level: LevelId,
    ticket: Ticket,
    parker: Arc<Parker>,
    /// Whether the request has left the queue: it got its slot, or the pool refused it.
    over: bool,
    /// Keeps the value on the thread that created it, because only that thread is woken.
    this_thread: PhantomData<*const ()>,
}

impl Waiting {
    pub(crate) fn new(scheduler: &Arc<PoolScheduler>, level: LevelId) -> Result<Self, Refused> {
        let parker = Arc::new(Parker::here());
        let ticket = scheduler.arrive(level, &parker)?;
        let scheduler = Arc::clone(scheduler);
        Ok(Self { scheduler, level, ticket, parker, over: false, this_thread: PhantomData })
    }

    /// Waits until the request gets its slot, and begins it.
    ///
    /// # Errors
    ///
    /// If the pool is closed.
    pub fn wait(mut self) -> Result<Request, Refused> {
        let wakeup = self.parker.wait();
        self.end(wakeup)
    }

    /// Waits until the request gets its slot, or until the time `end`. Returns `None` if it has not
    /// got a slot by that time; it stays in the queue.
    ///
    /// # Panics
    ///
    /// If an earlier call has already returned a request or an error.
    pub fn wait_until(&mut self, end: Instant) -> Option<Result<Request, Refused>> {
        assert!(!self.over, "a turn is had once");
        self.parker.wait_until(end).map(|wakeup| self.end(wakeup))
    }

    /// Leaves the queue because `patience` is over, and returns [`Refused::TimedOut`]. If the
    /// request has just got its slot, the request begins instead.
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
        // If the request has got its slot in the meantime, it begins and ends at once, which gives
        // the slot back.
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
