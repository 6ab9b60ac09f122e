//! How long requests take, smoothed.

use bywash_units::Span;

/// Mean service time by exponential smoothing: the last hundred or so requests count, which is
/// quick enough to follow a changed mix and slow enough not to follow one request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    mean: Span,
    seen: u32,
}

/// Weight of a new measurement once enough have been seen.
const WEIGHT: f64 = 1.0 / 64.0;

impl Pace {
    pub(crate) const fn new() -> Self {
        Self { mean: Span::ZERO, seen: 0 }
    }

    /// One more request took `service`.
    pub(crate) fn learn(&mut self, service: Span) {
        self.seen = self.seen.saturating_add(1);
        // The plain mean at first, so that the first request does not weigh for ever.
        let weight = WEIGHT.max(1.0 / f64::from(self.seen));
        self.mean = self.mean.scale(1.0 - weight) + service.scale(weight);
    }

    /// The mean; zero while nothing is known.
    pub(crate) const fn mean(&self) -> Span {
        self.mean
    }
}
