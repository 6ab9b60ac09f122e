//! The table of the engine's requests, with the task that waits for each of them.
//!
//! All drivers that run in real time use this table. Each adds a clock, a lock, and a ticket for
//! each request. Only the ticket of a request frees the request's number.

use alloc::vec::Vec;
use core::mem;
use core::task::{Context, Poll, Waker};

use bywash_units::{Time, TimeSpan};

use crate::action::Action;
use crate::engine::Engine;
use crate::event::Event;
use crate::reason::Reason;
use crate::request::{Request, RequestId};

/// The wakers of the tasks to wake. The driver calls the wakers after it has released its lock,
/// because a woken task may take that lock.
pub type Wakers = Vec<Waker>;

/// The engine and its requests, with the task that waits for each of them.
pub struct RequestTable {
    /// The engine. Use it directly only for calls that append no actions.
    /// [`RequestTable::carry_out`] makes the other calls.
    pub engine: Engine,
    /// The number of requests refused since the start.
    pub refused: u64,
    entries: Vec<Entry>,
    free: Vec<u32>,
    /// A buffer for the engine's actions, which is kept between calls to reuse its allocation.
    actions: Vec<Action>,
}

struct Entry {
    /// The decision about the request so far; `Waits` if the number is free.
    decision: Decision,
    /// The task that waits for the next decision: for a slot, or for the request to be stopped.
    waker: Option<Waker>,
}

const FREE: Entry = Entry { decision: Decision::Waits, waker: None };

/// The engine's decision about a request so far.
#[derive(Clone, Copy, Debug)]
pub enum Decision {
    /// The engine has the request in its queue.
    Waits,
    /// The request holds a slot.
    Granted {
        /// The reason for which the request runs.
        reason: Reason,
        /// The time at which the request got its slot.
        at: Time,
    },
    /// The engine has refused the request. The ticket keeps the number until
    /// [`RequestTable::release`].
    Refused(Refusal),
    /// The request ran, and was stopped. The ticket keeps the number until
    /// [`RequestTable::release`].
    Stopped(Refusal),
}

/// The engine's decision that a request gets no slot, or loses its slot.
#[derive(Clone, Copy, Debug)]
pub struct Refusal {
    /// The reason for which the request was refused or stopped.
    pub reason: Reason,
    /// The time after which the client may retry.
    pub retry_after: TimeSpan,
    /// The time of the decision.
    pub at: Time,
}

impl RequestTable {
    /// Creates a table without requests.
    pub fn new(engine: Engine) -> Self {
        Self { engine, refused: 0, entries: Vec::new(), free: Vec::new(), actions: Vec::new() }
    }

    /// Gives a new request a number, and hands the request to the engine. Returns the number.
    pub fn arrive(&mut self, now: Time, request: Request, wakers: &mut Wakers) -> RequestId {
        let id = RequestId(self.free.pop().unwrap_or_else(|| {
            self.entries.push(FREE);
            self.entries.len() as u32 - 1
        }));
        self.apply(now, Event::Arrived { id, request }, wakers);
        id
    }

    /// Hands an event to the engine, and carries out the resulting actions.
    pub fn apply(&mut self, now: Time, event: Event, wakers: &mut Wakers) {
        self.carry_out(now, wakers, |engine, actions| engine.on_event(now, event, actions));
    }

    /// Makes the engine do the work that is due. Returns the time at which this method must be
    /// called again; `None` if no call is due before the next event.
    pub fn on_timer(&mut self, now: Time, wakers: &mut Wakers) -> Option<Time> {
        self.carry_out(now, wakers, |engine, actions| engine.on_timer(now, actions));
        self.engine.next_timer()
    }

    /// Calls the engine, and carries out the actions that it appends.
    pub fn carry_out(
        &mut self,
        now: Time,
        wakers: &mut Wakers,
        call: impl FnOnce(&mut Engine, &mut Vec<Action>),
    ) {
        call(&mut self.engine, &mut self.actions);
        for action in self.actions.drain(..) {
            let (id, decision) = match action {
                Action::Dispatch { id, reason } => (id, Decision::Granted { reason, at: now }),
                Action::Shed { id, reason, retry_after } => {
                    self.refused += 1;
                    (id, Decision::Refused(Refusal { reason, retry_after, at: now }))
                }
                Action::Terminate { id, reason, retry_after } => {
                    (id, Decision::Stopped(Refusal { reason, retry_after, at: now }))
                }
                // The engine sends this action only for a request whose ticket was dropped, so no
                // task waits for the request.
                Action::Cancel { .. } => continue,
            };
            let entry = &mut self.entries[id.0 as usize];
            entry.decision = decision;
            wakers.extend(entry.waker.take());
        }
    }

    /// Returns the decision about a request so far.
    pub fn decision(&self, id: RequestId) -> Decision {
        self.entries[id.0 as usize].decision
    }

    /// Polls for a decision about a request. Passes the present decision to `awaited`, and returns
    /// the result if there is one. Otherwise returns `Pending`, and the next decision wakes the
    /// task.
    pub fn poll<T>(
        &mut self,
        id: RequestId,
        cx: &Context<'_>,
        awaited: impl FnOnce(Decision) -> Option<T>,
    ) -> Poll<T> {
        let entry = &mut self.entries[id.0 as usize];
        if let Some(found) = awaited(entry.decision) {
            return Poll::Ready(found);
        }
        entry.waker.get_or_insert_with(|| cx.waker().clone()).clone_from(cx.waker());
        Poll::Pending
    }

    /// Frees the number of a request. If the request waits or holds a slot, the event `how` ends
    /// it.
    pub fn release(&mut self, now: Time, id: RequestId, how: Event, wakers: &mut Wakers) {
        let entry = mem::replace(&mut self.entries[id.0 as usize], FREE);
        if matches!(entry.decision, Decision::Waits | Decision::Granted { .. }) {
            self.apply(now, how, wakers);
        }
        self.free.push(id.0);
    }
}
