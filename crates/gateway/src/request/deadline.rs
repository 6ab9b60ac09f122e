//! How long an upstream may take: to the first byte, between two, altogether.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bywash_config::Timeouts;
use bywash_units::Span;
use tokio::time::{Instant, Sleep};

use crate::upstream::{Exchange, UpstreamError};

/// The time of one exchange. Costs nothing until it is first waited for.
pub(super) struct Deadline {
    limit: Duration,
    /// What is over when `limit` is: the wait for the first byte, or the pause between two.
    answering: bool,
    idle: Duration,
    last: Instant,
    /// Bytes a second that the client's body must make; 0 for no minimum.
    rate: u64,
    /// What went up of it since `last`.
    uploaded: u64,
    total: Instant,
    sleep: Option<Pin<Box<Sleep>>>,
}

impl Deadline {
    pub(super) fn new(timeouts: &Timeouts, rate: u64) -> Self {
        let now = Instant::now();
        Self {
            limit: timeouts.response.to_std(),
            answering: false,
            idle: timeouts.idle.to_std(),
            last: now,
            rate,
            uploaded: 0,
            total: now + timeouts.total.to_std(),
            sleep: None,
        }
    }

    /// Something has moved.
    pub(super) fn progressed(&mut self) {
        self.last = Instant::now();
        self.uploaded = 0;
    }

    /// The upstream need not go on while the client's body goes up, or, until its answer has begun,
    /// while it waits for that: whether the client is too slow is for its pace to say. Behind the
    /// beginning of the answer there is no pace: both sides may talk when they like, and who has
    /// nothing to send is not slow. But then a body counts only if it comes at the client's rate,
    /// or a byte now and then would hold the slot. `sent` is how far it was.
    pub(super) fn excuses(&mut self, exchange: &Exchange, sent: &mut u64) {
        let before = std::mem::replace(sent, exchange.sent());
        self.uploaded += sent.saturating_sub(before);
        let goes_on = if self.answering {
            self.uploaded > 0 && self.uploaded as f64 >= self.due_by_now()
        } else {
            self.uploaded > 0 || exchange.waits_for_client()
        };
        if goes_on {
            self.progressed();
        }
    }

    /// Bytes that the client's rate has made since the last progress.
    fn due_by_now(&self) -> f64 {
        self.last.elapsed().as_secs_f64() * self.rate as f64
    }

    /// What is left of the whole time.
    pub(super) fn left(&self) -> Span {
        Span::from(self.total.saturating_duration_since(Instant::now()))
    }

    /// The answer has begun: from now on it may not stand still.
    pub(super) fn answers(&mut self) {
        self.limit = self.idle;
        // It may be due sooner than the one for the head was.
        self.sleep = None;
        self.answering = true;
        self.progressed();
    }

    /// Ready when the time is over.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<UpstreamError> {
        loop {
            let due = self.due();
            let sleep = self.sleep.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(due)));
            ready!(sleep.as_mut().poll(cx));
            // What has moved meanwhile has put it off.
            if due <= sleep.deadline() {
                return Poll::Ready(self.over());
            }
            sleep.as_mut().reset(due);
        }
    }

    fn due(&self) -> Instant {
        self.total.min(self.last + self.limit)
    }

    fn over(&self) -> UpstreamError {
        if self.total <= self.last + self.limit {
            UpstreamError::TotalTimeout
        } else if self.answering {
            UpstreamError::IdleTimeout(self.limit)
        } else {
            UpstreamError::ResponseTimeout(self.limit)
        }
    }
}
