//! A rate: so many starts a second, and no more than one that was saved up.

use bywash_units::{Rate, Span, Time};

/// A bucket with room for one token.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tokens {
    /// Between two starts.
    gap: Span,
    /// From then on another may start.
    ready: Time,
}

impl Tokens {
    /// From now on so many a second. A rate of nothing is one a day: who waits is refused before.
    pub(super) fn new(now: Time, rate: Rate) -> Self {
        const DAY: f64 = 86_400.0;
        Self { gap: Span::from_secs_f64((1.0 / rate.get()).clamp(0.0, DAY)), ready: now }
    }

    /// The same at another rate: what was taken stays taken.
    pub(super) fn at(self, now: Time, rate: Rate) -> Self {
        let other = Self::new(now, rate);
        Self { ready: self.ready.min(now + other.gap).max(now), ..other }
    }

    pub(super) const fn gap(&self) -> Span {
        self.gap
    }

    pub(super) const fn ready(&self) -> Time {
        self.ready
    }

    pub(super) fn take(&mut self, now: Time) {
        self.ready = self.ready.max(now) + self.gap;
    }
}
