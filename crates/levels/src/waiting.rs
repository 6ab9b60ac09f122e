//! A request in the queue, from its arrival to its turn or to its leaving.

use std::marker::PhantomData;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bywash_engine::levels::{LevelId, Ticket};

use crate::desk::Desk;
use crate::error::Refused;
use crate::request::Request;
use crate::seat::{Seat, Told};

/// A thread's request in the queue. The thread may wait several times and do other work in between.
/// Dropping the value leaves the queue.
///
/// The turn may come at any time, and then occupies a slot until the thread checks for it. So the
/// thread should check often, or leave.
pub struct Waiting {
    desk: Arc<Desk>,
    level: LevelId,
    ticket: Ticket,
    seat: Arc<Seat>,
    /// Whether the queue entry is used up: the turn has come, or the pool has refused the request.
    over: bool,
    /// The notification wakes the thread that created the value, so the value must stay on it.
    this_thread: PhantomData<*const ()>,
}

impl Waiting {
    pub(crate) fn new(desk: &Arc<Desk>, level: LevelId) -> Result<Self, Refused> {
        let seat = Arc::new(Seat::here());
        let ticket = desk.arrive(level, &seat)?;
        let desk = Arc::clone(desk);
        Ok(Self { desk, level, ticket, seat, over: false, this_thread: PhantomData })
    }

    /// Waits for the turn.
    ///
    /// # Errors
    ///
    /// If the pool is shut down.
    pub fn wait(mut self) -> Result<Request, Refused> {
        let told = self.seat.wait();
        self.end(told)
    }

    /// Waits for the turn, but not longer than until `end`. Returns `None` if it has not come.
    ///
    /// # Panics
    ///
    /// If it has already returned the turn or an error.
    pub fn wait_until(&mut self, end: Instant) -> Option<Result<Request, Refused>> {
        assert!(!self.over, "a turn is had once");
        self.seat.wait_until(end).map(|told| self.end(told))
    }

    /// Leaves the queue because `patience` is over, unless the turn has just come.
    pub(crate) fn leave(mut self, patience: Duration) -> Result<Request, Refused> {
        if self.desk.leave(self.level, self.ticket, &self.seat) {
            self.over = true;
            return Err(Refused::TimedOut(patience));
        }
        self.wait()
    }

    fn end(&mut self, told: Told) -> Result<Request, Refused> {
        self.over = true;
        match told {
            Told::Slot => Ok(Request::new(Arc::clone(&self.desk), self.ticket, self.level)),
            Told::Closed => Err(Refused::Closed),
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        // Take a turn that has come in the meantime, and end it at once.
        if !self.over && !self.desk.leave(self.level, self.ticket, &self.seat) {
            let told = self.seat.wait();
            drop(self.end(told));
        }
    }
}

impl std::fmt::Debug for Waiting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Waiting").field("ticket", &self.ticket).finish_non_exhaustive()
    }
}
