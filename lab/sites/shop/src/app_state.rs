//! The state that the HTTP thread and the workers share: the queue between them, the totals, and
//! whether the shop is closing.
//!
//! Each shop has one `AppState` in an `Arc`. The HTTP thread adds requests, the workers take them,
//! and any thread counts. Closing is permanent.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use bywash_site::{Queue, Refusal, ReplyReceiver, ReplySender, reply_channel};

use crate::counters::{Counters, Outcome};
use crate::request::ParsedRequest;
use crate::store::Answer;
use crate::{Options, Stage, Stats};

/// The time for which running requests may continue after the shop closes.
const GRACE: Duration = Duration::from_secs(1);

/// A request on its way to a worker.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) request: ParsedRequest,
    /// The sender of the answer, which knows as soon as the client has left. If the sender is
    /// dropped unused, the HTTP thread knows that the shop has abandoned the request.
    pub(crate) reply: ReplySender<Answer>,
}

/// The state of a running shop that all its threads use.
#[derive(Debug)]
pub(crate) struct AppState {
    pub(crate) options: Options,
    pub(crate) counters: Counters,
    pub(crate) queue: Queue<Job>,
    /// The time at which requests that still run are aborted. It is set when the shop closes.
    abort_at: OnceLock<Instant>,
}

impl AppState {
    /// Creates the state of an open shop whose database already holds `orders` orders.
    pub(crate) fn new(options: Options, orders: u64) -> Self {
        Self {
            queue: Queue::new(options.backlog),
            counters: Counters::new(orders),
            abort_at: OnceLock::new(),
            options,
        }
    }

    /// Queues a request and returns the receiver of its answer. Fails if the queue is full or
    /// closed. If the shop closes before the request runs, the receiver gets no answer.
    pub(crate) fn offer(&self, request: ParsedRequest) -> Result<ReplyReceiver<Answer>, Refusal> {
        let (reply, answer) = reply_channel();
        self.counters.count_received(request.stage);
        self.queue.push(Job { request, reply }).map_err(|job| self.refuse(&job))?;
        Ok(answer)
    }

    /// Closes the shop: accepts no more requests, and rejects those that wait. Running requests may
    /// continue for [`GRACE`].
    pub(crate) fn close(&self) {
        self.abort_at.get_or_init(|| Instant::now() + GRACE);
        for job in self.queue.close() {
            self.refuse(&job);
        }
    }

    /// Returns whether requests that still run must be aborted now.
    pub(crate) fn must_abort(&self) -> bool {
        self.abort_at.get().is_some_and(|at| Instant::now() >= *at)
    }

    /// Returns a reading of all statistics of the shop.
    pub(crate) fn read_stats(&self) -> Stats {
        let stages = Stage::ALL.map(|stage| (stage, self.counters.stage(stage)));
        Stats {
            busy_us_useful: stages.iter().map(|(_, stage)| stage.busy_us_useful).sum(),
            busy_us_wasted: stages.iter().map(|(_, stage)| stage.busy_us_wasted).sum(),
            stages: stages.into(),
            queue_length: self.queue.length(),
            running: self.counters.running_now(),
            departed: self.counters.departed_so_far(),
            orders: self.counters.orders_so_far(),
            workers: self.options.workers,
            backlog: self.options.backlog,
        }
    }

    fn refuse(&self, job: &Job) -> Refusal {
        self.counters.count_outcome(job.request.stage, Outcome::Refused);
        Refusal::Busy
    }
}
