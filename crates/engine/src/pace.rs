//! How long requests take, smoothed.

use bywash_units::Span;

/// Mean service time by exponential smoothing: the last hundred or so requests count, which is
/// quick enough to follow a changed mix and slow enough not to follow one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    mean: Span,
    seen: u32,
}

/// Weight of a new measurement once enough have been seen.
const WEIGHT: f64 = 1.0 / 64.0;

impl Pace {
    /// Nothing was measured yet.
    pub const UNKNOWN: Self = Self { mean: Span::ZERO, seen: 0 };

    /// A mean of `seen` measurements: what [`Pace::mean`] and [`Pace::seen`] gave once. The more
    /// there were, the less the next one changes it.
    pub const fn new(mean: Span, seen: u32) -> Self {
        Self { mean, seen }
    }

    /// One more request took `service`.
    pub(crate) fn learn(&mut self, service: Span) {
        self.seen = self.seen.saturating_add(1);
        // The plain mean at first, so that the first request does not weigh for ever.
        let weight = WEIGHT.max(1.0 / f64::from(self.seen));
        self.mean = self.mean.scale(1.0 - weight) + service.scale(weight);
    }

    /// The mean; zero while nothing is known.
    pub const fn mean(&self) -> Span {
        self.mean
    }

    /// How many measurements it is of; counts no further than it can.
    pub const fn seen(&self) -> u32 {
        self.seen
    }
}
