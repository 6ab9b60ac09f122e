//! A place in line: from a request's arrival to its turn, or to its leaving.

use std::marker::PhantomData;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bywash_engine::levels::{LevelId, Ticket};

use crate::desk::Desk;
use crate::error::Refused;
use crate::request::Request;
use crate::seat::{Seat, Told};

/// A thread's place in line. It may wait in parts, and look after something else in between; dropped, it has left.
///
/// Its turn may come at any time, and keeps a slot from others until the thread looks: so it should look often, or leave.
pub struct Waiting {
    desk: Arc<Desk>,
    level: LevelId,
    ticket: Ticket,
    seat: Arc<Seat>,
    /// The request is somebody else's: it has begun, or the pool has turned it out.
    over: bool,
    /// The thread is told by its own handle.
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

    /// The same, for no longer than that: `None` if nothing has come.
    ///
    /// # Panics
    ///
    /// If it has given its turn, or its error, before.
    pub fn wait_until(&mut self, end: Instant) -> Option<Result<Request, Refused>> {
        assert!(!self.over, "a turn is had once");
        self.seat.wait_until(end).map(|told| self.end(told))
    }

    /// It has waited that long, and leaves; unless its turn comes just then.
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
        // A turn that has come meanwhile is had, and over at once.
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
