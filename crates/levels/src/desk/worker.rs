//! The threads of the pool.

use std::sync::Arc;

use bywash_engine::levels::Ticket;

use super::{Desk, Work};
use crate::task::{Bag, Taken};

/// Runs a worker until the pool ends.
pub(crate) fn run(desk: &Arc<Desk>) {
    let mut comes_back = false;
    while let Some(work) = desk.next_work(comes_back) {
        match work {
            Work::Begin(ticket, level, job) => job(desk, ticket, level),
            Work::Help(ticket, bag) => help(desk, ticket, &bag),
        }
        comes_back = true;
    }
}

/// Runs tasks of a request until there are no more, or another request has a better claim to the
/// slot.
fn help(desk: &Arc<Desk>, ticket: Ticket, bag: &Arc<Bag>) {
    let since = desk.now();
    bag.come();
    while let Taken::Task(task, last) = bag.take() {
        if last {
            desk.tasks_changed(ticket, bag);
        }
        bag.run(task);
        if desk.should_yield(since) {
            break;
        }
    }
    desk.leave_bag(ticket, bag, since);
}
