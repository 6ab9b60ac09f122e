//! What the HTTP thread and the workers share: the queue between them, the totals, the closing.
//!
//! Ownership: one `House` in an `Arc` per store. The HTTP thread pushes, the workers pop, anybody counts; closing
//! happens once and is never undone.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use bywash_site::{Owed, Queue, Refusal, Reply, exchange};

use crate::ask::Ask;
use crate::counters::{Busy, Counters, Fate};
use crate::worker::Outcome;
use crate::{DatabaseStats, Options, Service, Stats};

/// A request on its way to a worker.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) service: Service,
    pub(crate) ask: Ask,
    /// Dropped unused, it tells the HTTP side that the store gave the request up.
    pub(crate) reply: Reply<Outcome>,
}

/// A running store as its threads see it.
#[derive(Debug)]
pub(crate) struct House {
    pub(crate) options: Options,
    pub(crate) counters: Counters,
    pub(crate) queue: Queue<Job>,
    kind: &'static str,
    pages: u32,
    /// Conversations with the stop daemon, if there is to be one.
    conversations: Option<Arc<AtomicU64>>,
}

impl House {
    /// An open house on a database of a `kind` with so many pages a book.
    pub(crate) fn new(
        options: Options,
        kind: &'static str,
        pages: u32,
        conversations: Option<Arc<AtomicU64>>,
    ) -> Self {
        let queue = Queue::new(options.backlog);
        Self { options, counters: Counters::default(), queue, kind, pages, conversations }
    }

    /// Puts a request into the queue; the answer comes through the receiver. The sender dropped without an answer
    /// means that the store closed first.
    pub(crate) fn offer(&self, service: Service, ask: Ask) -> Result<Owed<Outcome>, Refusal> {
        let (reply, answer) = exchange();
        self.counters.received(service);
        self.queue.push(Job { service, ask, reply }).map_err(|job| self.refuse(&job))?;
        Ok(answer)
    }

    /// Takes no more requests and turns away the waiting ones.
    pub(crate) fn close(&self) {
        for job in self.queue.close() {
            self.refuse(&job);
        }
    }

    /// A reading of everything.
    pub(crate) fn reading(&self) -> Stats {
        let services = Service::ALL.map(|service| (service, self.counters.service(service)));
        let (reachable, lost) = self.counters.database();
        Stats {
            busy_us: services.iter().map(|(_, service)| service.busy_us).sum(),
            busy_us_departed: services.iter().map(|(_, service)| service.busy_us_departed).sum(),
            busy_us_in_vain: services.iter().map(|(_, service)| service.busy_us_in_vain).sum(),
            services: services.into(),
            queue_length: self.queue.length(),
            running: self.counters.running_now(),
            departed: self.counters.departed_so_far(),
            workers: self.options.workers,
            backlog: self.options.backlog,
            sentry_conversations: self.conversations.as_ref().map(|begun| begun.load(Relaxed)),
            database: DatabaseStats { kind: self.kind, reachable, lost, pages: self.pages },
        }
    }

    fn refuse(&self, job: &Job) -> Refusal {
        self.counters.ended(job.service, Fate::Refused, Busy::default());
        Refusal::Busy
    }
}
