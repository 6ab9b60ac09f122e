//! The time of a run on this machine's clock.

use std::time::Duration;

use bywash_units::{Time, TimeSpan};
use tokio::time::{Instant, sleep_until};

/// The longest wait. It stands for an infinite wait, because some clocks cannot represent a longer
/// one.
const FAR: Duration = Duration::from_secs(366 * 24 * 3600);

/// A clock that shows zero when the run starts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    origin: Instant,
}

impl Clock {
    /// Starts a clock at time zero.
    pub(crate) fn start() -> Self {
        Self { origin: Instant::now() }
    }

    /// Returns the present time of the run.
    pub(crate) fn now(self) -> Time {
        Time::ZERO + TimeSpan::from(self.origin.elapsed())
    }

    /// Returns the instant at which the clock shows `time`.
    pub(crate) fn instant(self, time: Time) -> Instant {
        self.origin + time.since(Time::ZERO).to_std().min(FAR)
    }

    /// Waits until the clock shows `time`. The wait ends at an absolute time, so that delays do not
    /// accumulate. tokio's timer is up to a millisecond late.
    pub(crate) async fn reach(self, time: Time) {
        sleep_until(self.instant(time)).await;
    }
}
