//! The bounded first-come-first-served queue between the HTTP thread and the workers, with the
//! totals of outcomes.
//!
//! A worker completes a request and then answers. Until then it does not check whether the client
//! has left. Only the database can end a request early, when it receives a request to cancel the
//! running statement.

use std::time::Instant;

use bywash_site::{Body, Queue, Refusal, ReplyReceiver, ReplySender, reply_channel, text};
use http::{Response, StatusCode};

use crate::{Busy, Counters, DbError, Outcome};

/// The result of a request: a page, or the reason why there is none.
pub type DbResult<P> = Result<P, DbError>;

/// The queue between the HTTP thread, which adds requests, and the workers, which take them. It is
/// open at first, and then closed permanently.
#[derive(Debug)]
pub struct WorkQueue<A, P> {
    /// The totals of the requests' outcomes, since the queue was created.
    pub counters: Counters,
    queue: Queue<Job<A, P>>,
}

/// A request on its way to a worker.
#[derive(Debug)]
struct Job<A, P> {
    kind: usize,
    request: A,
    /// The sender of the result. If the sender is dropped unused, the HTTP thread knows that the
    /// application has abandoned the request.
    reply: ReplySender<DbResult<P>>,
}

impl<A, P> WorkQueue<A, P> {
    /// Creates an open queue for `kinds` kinds of requests. At most `backlog` requests wait in it.
    pub fn new(kinds: usize, backlog: usize) -> Self {
        Self { counters: Counters::new(kinds), queue: Queue::new(backlog) }
    }

    /// Queues `request`, which is of the kind with the index `kind`, and returns the receiver of
    /// its result. Fails if the queue is full or closed. If the queue closes before the request
    /// runs, the receiver gets no result.
    pub fn offer(&self, kind: usize, request: A) -> Result<ReplyReceiver<DbResult<P>>, Refusal> {
        let (reply, answer) = reply_channel();
        self.counters.count_received(kind);
        self.queue.push(Job { kind, request, reply }).map_err(|job| self.refuse(&job))?;
        Ok(answer)
    }

    /// Closes the queue: accepts no more requests, and rejects those that wait.
    pub fn close(&self) {
        for job in self.queue.close() {
            self.refuse(&job);
        }
    }

    /// Returns the number of requests that wait in the queue.
    pub fn length(&self) -> usize {
        self.queue.length()
    }

    /// Runs one worker on the calling thread. The worker serves one request after another with
    /// `serve` until the queue is closed.
    pub fn work(&self, mut serve: impl FnMut(usize, &A) -> DbResult<P>) {
        while let Some(job) = self.queue.pop() {
            let _running = self.counters.run();
            let begun = Instant::now();
            let result = serve(job.kind, &job.request);
            let stopped = result.as_ref().err().map(DbError::outcome);
            let done = Instant::now();
            let left = job.reply.send(result);
            let answered = if left.is_none() { Outcome::Served } else { Outcome::Orphaned };
            let in_vain = left.map(|left| done.saturating_duration_since(left.max(begun)));
            let busy = Busy { all: done - begun, in_vain };
            self.counters.count_outcome(job.kind, stopped.unwrap_or(answered), busy);
        }
    }

    fn refuse(&self, job: &Job<A, P>) -> Refusal {
        self.counters.count_outcome(job.kind, Outcome::Refused, Busy::default());
        Refusal::Busy
    }
}

impl DbError {
    fn outcome(&self) -> Outcome {
        match self {
            Self::Cancelled => Outcome::Cancelled,
            Self::Lost(_) | Self::Silent | Self::Taken | Self::Duplicate | Self::Failed(_) => {
                Outcome::Failed
            }
        }
    }

    /// Returns the response to the client for this error. The database's own message is shown only
    /// to the operator.
    pub fn answer(&self) -> Response<Body> {
        let (status, line) = match self {
            Self::Cancelled => {
                (StatusCode::SERVICE_UNAVAILABLE, "the request was stopped in the database")
            }
            Self::Lost(_) | Self::Silent => {
                (StatusCode::SERVICE_UNAVAILABLE, "the database is not available")
            }
            Self::Taken => {
                (StatusCode::SERVICE_UNAVAILABLE, "no connection to the database is free")
            }
            Self::Duplicate | Self::Failed(_) => {
                (StatusCode::INTERNAL_SERVER_ERROR, "the database failed")
            }
        };
        text(status, line)
    }
}
