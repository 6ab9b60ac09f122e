//! The pool's threads.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use bywash_engine::levels::Ticket;

use crate::desk::{Desk, Work};
use crate::request::Request;
use crate::task::{Bag, Taken};

/// A worker's life.
pub(crate) fn run(desk: &Arc<Desk>) {
    let mut comes_back = false;
    while let Some(work) = desk.next_work(comes_back) {
        match work {
            Work::Begin(ticket, level, job) => {
                let mut request = Request::new(Arc::clone(desk), ticket, level);
                // A job that panics is a request that failed.
                if let Err(panic) = catch_unwind(AssertUnwindSafe(|| job(&mut request))) {
                    request.panicked = true;
                    // To drop what a program threw may do anything, and this thread has others to serve.
                    std::mem::forget(panic);
                }
                request.end_of_worker();
            }
            Work::Help(ticket, bag) => help(desk, ticket, &bag),
        }
        comes_back = true;
    }
}

/// Runs tasks of a request for as long as there are some and nobody has a better claim to the slot.
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
