//! The state that the HTTP thread and the workers share: the queue between them, and the
//! statistics.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use bywash_database::WorkQueue;

use crate::files::File;
use crate::request::ParsedRequest;
use crate::store::Answer;
use crate::{DatabaseStats, Options, Service, Stats};

/// The response that a worker has made for a client.
#[derive(Debug)]
pub(crate) enum WorkerResponse {
    Page(Answer),
    File(File),
}

/// The state of a running store that all its threads use.
#[derive(Debug)]
pub(crate) struct AppState {
    pub(crate) options: Options,
    pub(crate) queue: WorkQueue<ParsedRequest, WorkerResponse>,
    kind: &'static str,
    pages: u32,
    /// The total number of conversations begun with the stop daemon; `None` if the store uses no
    /// daemon.
    conversations: Option<Arc<AtomicU64>>,
}

impl AppState {
    /// Creates the state of a store on a database of this `kind`, whose books have `pages` pages
    /// each.
    pub(crate) fn new(
        options: Options,
        kind: &'static str,
        pages: u32,
        conversations: Option<Arc<AtomicU64>>,
    ) -> Self {
        let queue = WorkQueue::new(Service::ALL.len(), options.backlog);
        Self { options, queue, kind, pages, conversations }
    }

    /// Returns the present statistics of the store.
    pub(crate) fn read_stats(&self) -> Stats {
        let counters = &self.queue.counters;
        let services = Service::ALL.map(|service| (service, counters.kind(service.index())));
        let (reachable, lost) = counters.database();
        Stats {
            busy_us: services.iter().map(|(_, service)| service.busy_us).sum(),
            busy_us_departed: services.iter().map(|(_, service)| service.busy_us_departed).sum(),
            busy_us_in_vain: services.iter().map(|(_, service)| service.busy_us_in_vain).sum(),
            services: services.into(),
            queue_length: self.queue.length(),
            running: counters.running_now(),
            departed: counters.departed_so_far(),
            workers: self.options.workers,
            backlog: self.options.backlog,
            stopd_conversations: self.conversations.as_ref().map(|begun| begun.load(Relaxed)),
            database: DatabaseStats { kind: self.kind, reachable, lost, pages: self.pages },
        }
    }
}
