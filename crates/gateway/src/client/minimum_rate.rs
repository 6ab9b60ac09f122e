//! The minimum rate of a body. A client that sends or reads more slowly than that occupies a slot
//! for nothing.
//!
//! Only the time in which the gateway waits for the client counts. A client may make the gateway
//! wait for ten seconds in total. Every `rate` bytes that are transferred give one second back, but
//! the total never exceeds ten seconds. Therefore a client that has taken much and then stops is
//! cut off as soon as any other. One `MinimumRate` covers one direction of one request.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Instant, Sleep};

/// The maximum total time for which the gateway waits for a client, less the time that transferred
/// bytes have given back.
const FREE: Duration = Duration::from_secs(10);

/// Enforces the minimum rate in one direction of one request.
#[derive(Default)]
pub(crate) struct MinimumRate {
    /// The minimum rate in bytes per second; 0 for no limit.
    rate: u64,
    /// The time that the gateway has waited for the client, less the time that transferred bytes
    /// have given back. The present wait is not included.
    waited: Duration,
    /// The present wait; `None` while the gateway does not wait for the client.
    waiting: Option<Wait>,
}

struct Wait {
    since: Instant,
    over: Pin<Box<Sleep>>,
}

impl MinimumRate {
    pub(crate) fn new(rate: u64) -> Self {
        Self { rate, ..Self::default() }
    }

    /// Records that this number of bytes was transferred, which ends the present wait. Zero bytes
    /// have no effect.
    pub(crate) fn record_bytes(&mut self, bytes: usize) {
        if bytes == 0 || self.rate == 0 {
            return;
        }
        if let Some(wait) = self.waiting.take() {
            self.waited += wait.since.elapsed();
        }
        if !self.waited.is_zero() {
            let earned = Duration::from_secs_f64(bytes as f64 / self.rate as f64);
            self.waited = self.waited.saturating_sub(earned);
        }
    }

    /// Records that the gateway waits for the client. Completes when the total wait exceeds the
    /// limit, and never if there is no minimum rate.
    pub(crate) fn poll_too_slow(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.rate == 0 {
            return Poll::Pending;
        }
        let left = FREE.saturating_sub(self.waited);
        let wait = self.waiting.get_or_insert_with(|| Wait {
            since: Instant::now(),
            over: Box::pin(tokio::time::sleep(left)),
        });
        wait.over.as_mut().poll(cx)
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use super::*;

    /// Waits until the client counts as too slow. Returns how long that took.
    async fn endures(minimum_rate: &mut MinimumRate) -> Duration {
        let start = Instant::now();
        poll_fn(|cx| minimum_rate.poll_too_slow(cx)).await;
        start.elapsed()
    }

    fn run(test: impl Future<Output = ()>) {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        builder.enable_all().start_paused(true).build().unwrap().block_on(test);
    }

    #[test]
    fn a_client_that_moves_nothing_is_waited_for_ten_seconds() {
        run(async {
            assert_eq!(endures(&mut MinimumRate::new(500)).await.as_secs(), 10);
        });
    }

    #[test]
    fn waits_add_up_over_pieces() {
        run(async {
            let mut minimum_rate = MinimumRate::new(500);
            for _ in 0..9 {
                let wait = tokio::time::timeout(Duration::from_secs(1), endures(&mut minimum_rate));
                assert!(wait.await.is_err());
                minimum_rate.record_bytes(1);
            }
            // A minute in which the gateway waits for the upstream does not count.
            tokio::time::sleep(Duration::from_secs(60)).await;
            assert_eq!(endures(&mut minimum_rate).await.as_secs(), 1);
        });
    }

    #[test]
    fn a_client_at_the_minimum_goes_on_for_ever() {
        run(async {
            let mut minimum_rate = MinimumRate::new(500);
            for _ in 0..600 {
                let wait = tokio::time::timeout(Duration::from_secs(1), endures(&mut minimum_rate));
                assert!(wait.await.is_err());
                minimum_rate.record_bytes(501);
            }
        });
    }

    #[test]
    fn nobody_saves_up_time() {
        run(async {
            let mut minimum_rate = MinimumRate::new(500);
            minimum_rate.record_bytes(5_000_000);
            assert_eq!(endures(&mut minimum_rate).await.as_secs(), 10);
        });
    }

    #[test]
    fn without_a_minimum_nobody_is_too_slow() {
        run(async {
            let mut minimum_rate = MinimumRate::new(0);
            let wait = tokio::time::timeout(Duration::from_secs(3600), endures(&mut minimum_rate));
            assert!(wait.await.is_err());
        });
    }
}
