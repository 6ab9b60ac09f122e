//! The workers: the threads of a pool.

use std::cell::Cell;
use std::ptr;
use std::sync::Arc;

use bywash_engine::levels::Ticket;

use super::{PoolScheduler, Work};
use crate::task::{Taken, TaskQueue};

thread_local! {
    /// The pool whose worker this thread is, or null.
    static POOL: Cell<*const PoolScheduler> = const { Cell::new(ptr::null()) };
}

/// Returns whether the calling thread is a worker of this pool.
pub(crate) fn works_for(scheduler: &PoolScheduler) -> bool {
    POOL.get() == ptr::from_ref(scheduler)
}

/// Runs a worker until the pool has no more work for it and is closed.
pub(crate) fn run(scheduler: &Arc<PoolScheduler>) {
    POOL.set(Arc::as_ptr(scheduler));
    let mut comes_back = false;
    while let Some(work) = scheduler.next_work(comes_back) {
        match work {
            Work::Begin(ticket, level, job) => job(scheduler, ticket, level),
            Work::Help(ticket, queue) => help(scheduler, ticket, &queue),
        }
        comes_back = true;
    }
}

/// Runs tasks of a request until there are none left, or until the scheduler wants the slot for
/// another request.
fn help(scheduler: &Arc<PoolScheduler>, ticket: Ticket, queue: &Arc<TaskQueue>) {
    let since = scheduler.now();
    queue.note_arrival();
    while let Taken::Task(task, last) = queue.take() {
        if last {
            scheduler.tasks_changed(ticket, queue);
        }
        queue.run(task);
        if scheduler.should_yield(since) {
            break;
        }
    }
    scheduler.leave_queue(ticket, queue, since);
}
