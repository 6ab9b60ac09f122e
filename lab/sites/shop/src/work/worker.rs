//! One worker thread: takes a request, is occupied by it, runs its SQL, answers.

use std::io::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::burn::{Aborted, Burner};
use crate::app_state::{AppState, Job};
use crate::counters::Outcome;
use crate::request::ParsedRequest;
use crate::store::{Answer, Page, StageResult, Store};

/// Between two looks at the client, when departures are noticed.
const ATTENTIVE: Duration = Duration::from_millis(5);

/// Between two looks at whether the shop is closing.
const BUSY: Duration = Duration::from_millis(100);

/// A worker and its own database connection.
#[derive(Debug)]
pub(crate) struct Worker {
    state: Arc<AppState>,
    store: Store,
    burner: Burner,
}

impl Worker {
    /// A worker of `state`, to be made on its own thread.
    pub(crate) fn new(state: Arc<AppState>, store: Store) -> Self {
        let burner = Burner::new(state.options.burn);
        Self { state, store, burner }
    }

    /// Works until the queue is closed.
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

    /// Useful is what reaches a client who is still there; nothing else is.
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
            // Nobody reading it is no reason not to serve.
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
