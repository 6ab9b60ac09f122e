//! The threads of the pool.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use bywash_engine::levels::Ticket;

use crate::desk::{Desk, Work};
use crate::request::Request;
use crate::task::{Bag, Taken};

/// Runs a worker until the pool ends.
pub(crate) fn run(desk: &Arc<Desk>) {
    let mut comes_back = false;
    while let Some(work) = desk.next_work(comes_back) {
        match work {
            Work::Begin(ticket, level, job) => {
                let mut request = Request::new(Arc::clone(desk), ticket, level);
                // A job that panics is a failed request.
                if let Err(panic) = catch_unwind(AssertUnwindSafe(|| job(&mut request))) {
                    request.panicked = true;
                    // Dropping a panic payload may run arbitrary code, and this thread serves other
                    // requests.
                    std::mem::forget(panic);
                }
                request.end_of_worker();
            }
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
