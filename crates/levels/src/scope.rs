//! Tasks of a request, side by side.

use std::marker::PhantomData;
use std::sync::Arc;

use bywash_engine::levels::Ticket;

use crate::desk::Desk;
use crate::task::Bag;

/// Where tasks of a request are spawned: see [`Request::scope`](crate::Request::scope).
pub struct Scope<'scope, 'env: 'scope> {
    desk: Arc<Desk>,
    ticket: Ticket,
    bag: Arc<Bag>,
    /// Threads that the level may have beside the request's own.
    others: u32,
    /// Neither lifetime may be taken for a longer or a shorter one.
    lifetimes: PhantomData<(&'scope mut &'scope (), &'env mut &'env ())>,
}

impl<'scope> Scope<'scope, '_> {
    pub(crate) fn new(desk: Arc<Desk>, ticket: Ticket, bag: Arc<Bag>, others: u32) -> Self {
        Self { desk, ticket, bag, others, lifetimes: PhantomData }
    }

    /// Has a task run, by this thread when the scope's closure has returned or by another before. A task may spawn
    /// others.
    ///
    /// If it panics, the scope does, once all tasks have ended.
    pub fn spawn<F>(&'scope self, task: F)
    where
        F: FnOnce() + Send + 'scope,
    {
        self.put(Box::new(task), self.others);
    }

    /// As [`Scope::spawn`], of so many at once: nobody is called for the first before the last is there.
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
        // SAFETY: a scope is made by `Request::scope` alone, which does not return, nor unwind, before its bag is done;
        // 'scope lasts until then, as the reference that it names is to a local of that function.
        if unsafe { self.bag.put(task, most) } {
            self.desk.tasks_changed(self.ticket, &self.bag);
        }
    }
}

impl std::fmt::Debug for Scope<'_, '_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Scope").field("ticket", &self.ticket).finish_non_exhaustive()
    }
}
