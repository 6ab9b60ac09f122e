//! A rate limit on starts per second. At most one unused start is saved.

use bywash_units::{Rate, Time, TimeSpan};

/// A token bucket with room for one token, which one start takes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tokens {
    /// The time in which the bucket gains one token: the inverse of the rate.
    gap: TimeSpan,
    /// The earliest time at which another request may start.
    ready: Time,
}

impl Tokens {
    /// Creates a bucket with this rate, which has a token at `now`. A rate of zero counts as one
    /// start per day: a waiting request is refused long before it could start.
    pub(super) fn new(now: Time, rate: Rate) -> Self {
        const DAY: f64 = 86_400.0;
        Self { gap: TimeSpan::from_secs_f64((1.0 / rate.get()).clamp(0.0, DAY)), ready: now }
    }

    /// Returns this bucket with another rate from `now` on. Tokens that were taken before stay
    /// taken.
    pub(super) fn at(self, now: Time, rate: Rate) -> Self {
        let other = Self::new(now, rate);
        Self { ready: self.ready.min(now + other.gap).max(now), ..other }
    }

    pub(super) const fn gap(&self) -> TimeSpan {
        self.gap
    }

    pub(super) const fn ready(&self) -> Time {
        self.ready
    }

    pub(super) fn take(&mut self, now: Time) {
        self.ready = self.ready.max(now) + self.gap;
    }
}
