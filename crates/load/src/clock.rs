//! The scenario's time on this machine's clock.

use std::time::Duration;

use bywash_units::{Span, Time};
use tokio::time::{Instant, sleep_until};

/// Waits beyond this are as good as for ever, and some clocks cannot hold them.
const FAR: Duration = Duration::from_secs(366 * 24 * 3600);

/// A clock that was started with the run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    origin: Instant,
}

impl Clock {
    /// A clock that shows zero now.
    pub(crate) fn start() -> Self {
        Self { origin: Instant::now() }
    }

    /// What it shows.
    pub(crate) fn now(self) -> Time {
        Time::ZERO + Span::from(self.origin.elapsed())
    }

    /// When it will show `moment`.
    pub(crate) fn instant(self, moment: Time) -> Instant {
        self.origin + moment.since(Time::ZERO).to_std().min(FAR)
    }

    /// Waits until it shows `moment`. The wait is absolute, so that being late once does not add
    /// up; tokio's timer is up to a millisecond late.
    pub(crate) async fn reach(self, moment: Time) {
        sleep_until(self.instant(moment)).await;
    }
}
