//! The scenario's time on this machine's clock.

use std::time::Duration;

use bywash_units::{Time, TimeSpan};
use tokio::time::{Instant, sleep_until};

/// The longest wait. It is as good as infinite, and some clocks cannot represent more.
const FAR: Duration = Duration::from_secs(366 * 24 * 3600);

/// A clock that starts with the run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    origin: Instant,
}

impl Clock {
    /// Starts a clock at zero.
    pub(crate) fn start() -> Self {
        Self { origin: Instant::now() }
    }

    /// Returns its time.
    pub(crate) fn now(self) -> Time {
        Time::ZERO + TimeSpan::from(self.origin.elapsed())
    }

    /// Returns the instant at which it shows `time`.
    pub(crate) fn instant(self, time: Time) -> Instant {
        self.origin + time.since(Time::ZERO).to_std().min(FAR)
    }

    /// Waits until it shows `time`. The wait is absolute, so that delays do not accumulate;
    /// tokio's timer is up to a millisecond late.
    pub(crate) async fn reach(self, time: Time) {
        sleep_until(self.instant(time)).await;
    }
}
