//! What the HTTP thread and the workers share: the queue between them, the totals, the closing.
//!
//! Ownership: one `AppState` in an `Arc` per shop. The HTTP thread pushes, the workers pop, anybody
//! counts; closing happens once and is never undone.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use bywash_site::{Queue, Refusal, ReplyReceiver, ReplySender, reply_channel};

use crate::counters::{Counters, Outcome};
use crate::request::ParsedRequest;
use crate::store::Answer;
use crate::{Options, Stage, Stats};

/// How long work that is running when the shop closes may go on.
const GRACE: Duration = Duration::from_secs(1);

/// A request on its way to a worker.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) request: ParsedRequest,
    /// Closed as soon as the client has left. Dropped unused, it tells the HTTP side that the shop
    /// gave the request up.
    pub(crate) reply: ReplySender<Answer>,
}

/// A running shop as its threads see it.
#[derive(Debug)]
pub(crate) struct AppState {
    pub(crate) options: Options,
    pub(crate) counters: Counters,
    pub(crate) queue: Queue<Job>,
    /// When work still running is broken off; set on closing.
    abort_at: OnceLock<Instant>,
}

impl AppState {
    /// The state of an open shop whose database holds `orders` already.
    pub(crate) fn new(options: Options, orders: u64) -> Self {
        Self {
            queue: Queue::new(options.backlog),
            counters: Counters::new(orders),
            abort_at: OnceLock::new(),
            options,
        }
    }

    /// Puts a request into the queue; the answer comes through the receiver. The sender dropped
    /// without an answer means that the shop closed first.
    pub(crate) fn offer(&self, request: ParsedRequest) -> Result<ReplyReceiver<Answer>, Refusal> {
        let (reply, answer) = reply_channel();
        self.counters.count_received(request.stage);
        self.queue.push(Job { request, reply }).map_err(|job| self.refuse(&job))?;
        Ok(answer)
    }

    /// Takes no more requests, turns away the waiting ones, and gives the running ones a moment.
    pub(crate) fn close(&self) {
        self.abort_at.get_or_init(|| Instant::now() + GRACE);
        for job in self.queue.close() {
            self.refuse(&job);
        }
    }

    /// Whether running work must be broken off now.
    pub(crate) fn must_abort(&self) -> bool {
        self.abort_at.get().is_some_and(|at| Instant::now() >= *at)
    }

    /// A reading of everything.
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
