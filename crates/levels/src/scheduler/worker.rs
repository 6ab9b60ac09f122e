//! The threads of the pool.

use std::sync::Arc;

use bywash_engine::levels::Ticket;

use super::{PoolScheduler, Work};
use crate::task::{Taken, TaskQueue};

/// Runs a worker until the pool ends.
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

/// Runs tasks of a request until there are no more, or another request has a better claim to the
/// slot.
fn help(scheduler: &Arc<PoolScheduler>, ticket: Ticket, queue: &Arc<TaskQueue>) {
    let since = scheduler.now();
    queue.come();
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
