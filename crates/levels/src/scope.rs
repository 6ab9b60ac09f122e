//! Scopes: groups of tasks of a request that run in parallel.

use std::marker::PhantomData;
use std::sync::Arc;

use bywash_engine::levels::Ticket;

use crate::scheduler::PoolScheduler;
use crate::task::TaskQueue;

/// A scope in which a request spawns tasks: see [`Request::scope`](crate::Request::scope).
pub struct Scope<'scope, 'env: 'scope> {
    scheduler: Arc<PoolScheduler>,
    ticket: Ticket,
    queue: Arc<TaskQueue>,
    /// The maximum number of threads that the level allows in addition to the request's own.
    others: u32,
    /// Makes both lifetimes invariant.
    lifetimes: PhantomData<(&'scope mut &'scope (), &'env mut &'env ())>,
}

impl<'scope> Scope<'scope, '_> {
    pub(crate) fn new(
        scheduler: Arc<PoolScheduler>,
        ticket: Ticket,
        queue: Arc<TaskQueue>,
        others: u32,
    ) -> Self {
        Self { scheduler, ticket, queue, others, lifetimes: PhantomData }
    }

    /// Spawns a task. Another thread may run it immediately. Otherwise this thread runs it when the
    /// closure of the scope has returned. A task may spawn further tasks.
    ///
    /// If the task panics, the scope panics after all tasks have ended.
    pub fn spawn<F>(&'scope self, task: F)
    where
        F: FnOnce() + Send + 'scope,
    {
        self.put(Box::new(task), self.others);
    }

    /// Spawns several tasks like [`Scope::spawn`]. Workers are called only when the last task is
    /// queued.
    pub(crate) fn spawn_all<F>(&'scope self, tasks: impl ExactSizeIterator<Item = F>)
    where
        F: FnOnce() + Send + 'scope,
    {
        let last = tasks.len().saturating_sub(1);
        for (index, task) in tasks.enumerate() {
            let most = if index == last && last > 0 { self.others } else { 0 };
            self.put(Box::new(task), most);
        }
    }

    #[allow(unsafe_code, reason = "tasks borrow from the frame of their scope")]
    fn put(&self, task: Box<dyn FnOnce() + Send + 'scope>, most: u32) {
        // SAFETY: only `Request::scope` creates a scope, and it neither returns nor unwinds before
        // the task queue is done. 'scope lasts until then, because the reference with this lifetime
        // points to a local of that function.
        if unsafe { self.queue.put(task, most) } {
            self.scheduler.tasks_changed(self.ticket, &self.queue);
        }
    }
}

impl std::fmt::Debug for Scope<'_, '_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Scope").field("ticket", &self.ticket).finish_non_exhaustive()
    }
}
