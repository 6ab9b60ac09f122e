//! Slots that a running request takes for code that does not ask the pool for slots, such as rayon.

use std::sync::Arc;

use bywash_engine::levels::{Grant, Ticket};
use bywash_units::{Time, TimeSpan};

use super::PoolScheduler;

/// The slots that a running request has in addition to its own, until the value is dropped.
pub(crate) struct Lease<'d> {
    scheduler: &'d Arc<PoolScheduler>,
    ticket: Ticket,
    others: u32,
    since: Time,
}

impl Lease<'_> {
    /// Returns the number of threads that the request may run on, its own thread included.
    pub(crate) const fn threads(&self) -> u32 {
        self.others + 1
    }
}

impl Drop for Lease<'_> {
    fn drop(&mut self) {
        let mut state = self.scheduler.lock();
        let now = self.scheduler.now();
        for _ in 0..self.others {
            state.levels.release(now, self.ticket, now.since(self.since));
        }
        self.scheduler.dispatch(state, 0);
    }
}

impl PoolScheduler {
    /// Takes up to `most` slots for a running request, in addition to its own. Takes only slots
    /// that no other request wants. Code that does not ask the pool for slots (such as rayon) may
    /// then use as many threads.
    pub(crate) fn lease(self: &Arc<Self>, ticket: Ticket, most: u32) -> Lease<'_> {
        let mut state = self.lock();
        let now = self.now();
        state.levels.want(ticket, most);
        let mut others = 0;
        while let Some(grant) = state.levels.grant(now) {
            if grant == Grant::Widen(ticket) { others += 1 } else { state.tell(grant) }
        }
        let kept = crate::rayon::size(others + 1) - 1;
        state.levels.want(ticket, 0);
        for _ in kept..others {
            state.levels.release(now, ticket, TimeSpan::ZERO);
        }
        self.dispatch(state, 0);
        Lease { scheduler: self, ticket, others: kept, since: now }
    }
}
