//! The time limits of an upstream: to the first byte of a response, between two bytes, and in
//! total.
//!
//! Setting a timer costs more than a request that needs none should pay. So the requests of a client
//! connection share one, which stays set from one request to the next. If it fires too early, it is
//! set again.

use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bywash_config::Timeouts;
use bywash_units::TimeSpan;
use tokio::time::{Instant, Sleep};

use super::Peer;
use crate::upstream::{Exchange, UpstreamError};

/// The time limits of one exchange. No timer is set before the first wait.
pub(super) struct Deadline {
    /// The limit on a pause without progress. Before the response, this is `response_timeout`;
    /// afterwards `idle_timeout`.
    limit: Duration,
    /// Whether the response has begun, so that `limit` is for the pause between two bytes.
    answering: bool,
    idle: Duration,
    last: Instant,
    /// The minimum rate of the client's body in bytes a second; 0 for no minimum.
    rate: u64,
    /// The number of bytes of the client's body that were sent since `last`.
    uploaded: u64,
    total: Instant,
    sleep: Option<Pin<Box<Sleep>>>,
    /// The client's connection, which keeps the timer when this exchange is over.
    peer: Rc<Peer>,
}

impl Deadline {
    pub(super) fn new(timeouts: &Timeouts, rate: u64, peer: Rc<Peer>) -> Self {
        let now = Instant::now();
        Self {
            limit: timeouts.response.to_std(),
            answering: false,
            idle: timeouts.idle.to_std(),
            last: now,
            rate,
            uploaded: 0,
            total: now + timeouts.total.to_std(),
            sleep: peer.timer.take(),
            peer,
        }
    }

    /// Records progress in either direction, which restarts the limit on pauses.
    pub(super) fn progressed(&mut self) {
        self.last = Instant::now();
        self.uploaded = 0;
    }

    /// Restarts the limit on pauses while the upstream is not to blame for a pause. `sent` holds
    /// the number of body bytes sent at the last call, and is updated.
    ///
    /// Before the response has begun, that is the case while the client's body is sent, or while
    /// the upstream waits for more of it. [`ClientRate`](super::client_rate::ClientRate) judges
    /// whether the client is too slow. After the response has begun, the client's rate is not
    /// judged, because both sides may pause. From then on, a body counts only if it arrives at the
    /// minimum rate. Otherwise a client could hold the slot with a byte now and then.
    pub(super) fn excuse_upstream(&mut self, exchange: &Exchange, sent: &mut u64) {
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

    /// Returns the number of body bytes that the client must have sent since `last` at its minimum
    /// rate.
    fn due_by_now(&self) -> f64 {
        self.last.elapsed().as_secs_f64() * self.rate as f64
    }

    /// Returns the time that is left until the limit on the total time.
    pub(super) fn left(&self) -> TimeSpan {
        TimeSpan::from(self.total.saturating_duration_since(Instant::now()))
    }

    /// Returns the time that was left when [`Deadline::progressed`] was last called.
    pub(super) fn left_at_progress(&self) -> TimeSpan {
        TimeSpan::from(self.total.saturating_duration_since(self.last))
    }

    /// Records that the response has begun. From now on the limit is the one on pauses between two
    /// bytes.
    pub(super) fn answers(&mut self) {
        self.limit = self.idle;
        self.answering = true;
        self.progressed();
    }

    /// Completes with an error when a limit is exceeded.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<UpstreamError> {
        loop {
            let due = self.due();
            let sleep = self.sleep.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(due)));
            if due < sleep.deadline() {
                sleep.as_mut().reset(due);
            }
            ready!(sleep.as_mut().poll(cx));
            // If there was progress since the timer was set, or if it was set for an earlier request,
            // the limit is due later than the timer.
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

impl Drop for Deadline {
    fn drop(&mut self) {
        if let Some(sleep) = self.sleep.take() {
            self.peer.timer.set(Some(sleep));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::net::{IpAddr, Ipv4Addr};

    use super::*;

    fn deadline(peer: &Rc<Peer>, seconds: u64) -> Deadline {
        let limit = TimeSpan::from_secs(seconds);
        let timeouts = Timeouts { connect: limit, response: limit, idle: limit, total: limit };
        Deadline::new(&timeouts, 0, Rc::clone(peer))
    }

    #[tokio::test(start_paused = true)]
    async fn a_kept_timer_of_an_earlier_request_changes_no_limit() {
        let peer = Rc::new(Peer::of(IpAddr::V4(Ipv4Addr::LOCALHOST), false));
        // The first request leaves a timer that is due later than the second one's limit, and the
        // second one leaves a timer that is due earlier than the third one's.
        for seconds in [60, 2, 30] {
            let began = Instant::now();
            let mut deadline = deadline(&peer, seconds);
            let over = poll_fn(|cx| deadline.poll(cx));
            if seconds == 60 {
                assert!(tokio::time::timeout(Duration::from_secs(1), over).await.is_err());
            } else {
                over.await;
                assert_eq!(began.elapsed().as_secs(), seconds);
            }
        }
    }
}
