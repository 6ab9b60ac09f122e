//! The state that the HTTP thread and the workers share: the queue between them, and the
//! statistics.

use std::io::Write;
use std::sync::Arc;

use bywash_database::{DbError, WorkQueue};

use crate::request::Operation;
use crate::stats::DatabaseStats;
use crate::store::{Answer, Store};
use crate::{Options, Page, Stats};

/// The state of a running auction that all its threads use.
#[derive(Debug)]
pub(crate) struct AppState {
    pub(crate) options: Options,
    pub(crate) queue: WorkQueue<Operation, Answer>,
}

impl AppState {
    pub(crate) fn new(options: Options) -> Self {
        let queue = WorkQueue::new(Page::ALL.len(), options.backlog);
        Self { options, queue }
    }

    /// Returns the present statistics of the auction.
    pub(crate) fn read_stats(&self) -> Stats {
        let counters = &self.queue.counters;
        let pages = Page::ALL.map(|page| (page, counters.kind(page.index())));
        let (reachable, lost) = counters.database();
        let kind = self.options.database.dialect().name;
        Stats {
            busy_us: pages.iter().map(|(_, page)| page.busy_us).sum(),
            pages: pages.into(),
            queue_length: self.queue.length(),
            running: counters.running_now(),
            departed: counters.departed_so_far(),
            workers: self.options.workers,
            backlog: self.options.backlog,
            database: DatabaseStats { kind, reachable, lost },
        }
    }
}

/// Serves requests on one worker thread until the queue is closed.
#[expect(clippy::needless_pass_by_value, reason = "the thread owns its values")]
pub(crate) fn work(state: Arc<AppState>, mut store: Store) {
    state.queue.work(|page, operation| {
        let served = store.serve(operation);
        let is_unavailable = served.as_ref().is_err_and(DbError::is_unavailable);
        if is_unavailable || store.has_begun_statement() {
            state.queue.counters.record_database(!is_unavailable);
        }
        if let Err(error) = &served {
            // If the message cannot be printed, the auction still serves.
            let _unread =
                writeln!(std::io::stderr(), "auction: {}: {error}", Page::ALL[page].path());
        }
        served
    });
}
