//! The time limits of an upstream: to the first byte, between two bytes, and in total.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bywash_config::Timeouts;
use bywash_units::TimeSpan;
use tokio::time::{Instant, Sleep};

use crate::upstream::{Exchange, UpstreamError};

/// The time limits of one exchange. Costs nothing until it is first waited for.
pub(super) struct Deadline {
    limit: Duration,
    /// `limit` is for the pause between two bytes, and not for the wait for the first byte.
    answering: bool,
    idle: Duration,
    last: Instant,
    /// The minimum rate of the client's body in bytes a second; 0 for no minimum.
    rate: u64,
    /// Bytes of the client's body sent since `last`.
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

    /// Records progress in either direction.
    pub(super) fn progressed(&mut self) {
        self.last = Instant::now();
        self.uploaded = 0;
    }

    /// Restarts the time while the upstream need not go on. Before the response has begun, that is
    /// while the client's body is sent, or while the upstream waits for more of it; the client's
    /// pace decides whether the client is too slow. After the response has begun, there is no pace:
    /// both sides may pause, and a client with nothing to send is not slow. From then on, a body
    /// counts only if it arrives at the minimum rate. Otherwise, a byte now and then would hold the
    /// slot. `sent` is the number of bytes sent at the last call.
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

    /// Returns the bytes due by now at the minimum rate of the client.
    fn due_by_now(&self) -> f64 {
        self.last.elapsed().as_secs_f64() * self.rate as f64
    }

    /// Returns what is left of the total time.
    pub(super) fn left(&self) -> TimeSpan {
        TimeSpan::from(self.total.saturating_duration_since(Instant::now()))
    }

    /// Records that the response has begun, so that from now on its pauses are limited.
    pub(super) fn answers(&mut self) {
        self.limit = self.idle;
        // The new limit may be due sooner than the limit for the head.
        self.sleep = None;
        self.answering = true;
        self.progressed();
    }

    /// Completes when a limit is exceeded.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<UpstreamError> {
        loop {
            let due = self.due();
            let sleep = self.sleep.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(due)));
            ready!(sleep.as_mut().poll(cx));
            // Progress since the timer was set has postponed the limit.
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
