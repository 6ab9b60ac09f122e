//! One worker thread: it takes a request, spends its demand, runs its SQL, and answers.

use std::io::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::burn::{Aborted, Burner};
use crate::app_state::{AppState, Job};
use crate::counters::Outcome;
use crate::request::ParsedRequest;
use crate::store::{Answer, Page, StageResult, Store};

/// The interval between two checks whether the client has left, if the shop notices departures.
const ATTENTIVE: Duration = Duration::from_millis(5);

/// The interval between two checks whether the shop is closing, if the shop does not notice
/// departures.
const BUSY: Duration = Duration::from_millis(100);

/// A worker with its own database connection.
#[derive(Debug)]
pub(crate) struct Worker {
    state: Arc<AppState>,
    store: Store,
    burner: Burner,
}

impl Worker {
    /// Creates a worker of the shop `state`. The worker's own thread must call this function.
    pub(crate) fn new(state: Arc<AppState>, store: Store) -> Self {
        let burner = Burner::new(state.options.burn);
        Self { state, store, burner }
    }

    /// Runs one request after another until the queue is closed.
    pub(crate) fn run(mut self) {
        while let Some(job) = self.state.queue.pop() {
            self.take(job);
        }
    }

    fn take(&mut self, job: Job) {
        let shared = Arc::clone(&self.state);
        let _running = shared.counters.run();
        let stage = job.request.stage;
        let outcome = if self.notices_departure(&job) { Outcome::Skipped } else { self.work(job) };
        shared.counters.count_outcome(stage, outcome);
    }

    /// Runs a request and returns its outcome. The work counts as useful only if the answer is
    /// ready before the client leaves.
    fn work(&mut self, job: Job) -> Outcome {
        let begun = Instant::now();
        let answer = self.occupy(&job).map(|()| self.answer(&job.request));
        let busy = begun.elapsed();
        match answer.map(|answer| job.reply.send(answer)) {
            Ok(None) => Outcome::Answered(busy),
            Ok(Some(_)) | Err(Aborted) => Outcome::Wasted(busy),
        }
    }

    fn occupy(&self, job: &Job) -> Result<(), Aborted> {
        let options = &self.state.options;
        let demand = job.request.demand.unwrap_or(options.demand[job.request.stage.index()]);
        let step = if options.notice_close { ATTENTIVE } else { BUSY };
        self.burner.burn(demand, step, || self.state.must_abort() || self.notices_departure(job))
    }

    fn answer(&mut self, request: &ParsedRequest) -> Answer {
        let served = self.store.serve(request).unwrap_or_else(|error| {
            // If the line cannot be written, the shop serves requests nevertheless.
            let _unread = writeln!(std::io::stderr(), "shop: {}: {error}", request.stage.name());
            self.state.counters.count_failed(request.stage);
            Answer { result: StageResult::Failed, new_session: None }
        });
        if matches!(served.result, StageResult::Page(Page::Ordered(_))) {
            self.state.counters.count_order();
        }
        served
    }

    fn notices_departure(&self, job: &Job) -> bool {
        self.state.options.notice_close && job.reply.left().is_some()
    }
}
