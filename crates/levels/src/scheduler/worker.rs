//! The workers: the threads of a pool.

use std::sync::Arc;

use bywash_engine::levels::Ticket;

use super::{PoolScheduler, Work};
use crate::task::{Taken, TaskQueue};

/// Runs a worker until the pool has no more work for it and is closed.
pub(crate) fn run(scheduler: &Arc<PoolScheduler>) {
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
