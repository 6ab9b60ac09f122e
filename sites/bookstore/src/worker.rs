//! One worker thread: takes a request, serves it to its end, answers.
//!
//! As in the seed's plain server it does not look at its client while it works. What stops a request early is the
//! database, when somebody asks it to.

use std::io::Write;
use std::sync::Arc;
use std::time::Instant;

use crate::ask::Ask;
use crate::counters::{Busy, Fate};
use crate::database::Trouble;
use crate::files::{self, File};
use crate::house::{House, Job};
use crate::store::{Answer, Store};

/// A worker and its own database connection.
pub(crate) struct Worker {
    house: Arc<House>,
    store: Store,
}

/// What is written to the client.
#[derive(Debug)]
pub(crate) enum Outcome {
    Page(Answer),
    File(File),
    Trouble(Trouble),
}

impl Worker {
    pub(crate) fn new(house: Arc<House>, store: Store) -> Self {
        Self { house, store }
    }

    /// Works until the queue is closed.
    pub(crate) fn run(mut self) {
        while let Some(job) = self.house.queue.pop() {
            self.take(job);
        }
    }

    fn take(&mut self, job: Job) {
        let house = Arc::clone(&self.house);
        let _running = house.counters.run();
        let begun = Instant::now();
        let outcome = self.work(&job);
        let stopped = match &outcome {
            Outcome::Trouble(Trouble::Cancelled) => Some(Fate::Cancelled),
            Outcome::Trouble(
                Trouble::Lost(_) | Trouble::Silent | Trouble::Taken | Trouble::Failed(_),
            ) => Some(Fate::Failed),
            Outcome::Page(_) | Outcome::File(_) => None,
        };
        let done = Instant::now();
        let left = job.reply.send(outcome);
        let fate = stopped.unwrap_or(if left.is_none() { Fate::Served } else { Fate::Orphaned });
        let in_vain = left.map(|left| done.saturating_duration_since(left.max(begun)));
        let busy = Busy { all: done - begun, in_vain };
        house.counters.ended(job.service, fate, busy);
    }

    fn work(&mut self, job: &Job) -> Outcome {
        let visit = match &job.ask {
            Ask::File(number) => return Outcome::File(files::file(*number)),
            Ask::Store(visit) => visit,
        };
        let served = self.store.serve(visit);
        let is_away = served.as_ref().is_err_and(Trouble::is_away);
        if is_away || self.store.has_asked() {
            self.house.counters.met_database(!is_away);
        }
        match served {
            Ok(answer) => Outcome::Page(answer),
            Err(trouble) => {
                if trouble != Trouble::Cancelled {
                    let name = job.service.name();
                    // Nobody reading it is no reason not to serve.
                    let _unread = writeln!(std::io::stderr(), "bookstore: {name}: {trouble}");
                }
                Outcome::Trouble(trouble)
            }
        }
    }
}
