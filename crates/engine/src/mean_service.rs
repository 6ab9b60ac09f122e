//! The mean service time of requests, smoothed.

use bywash_units::Span;

/// The mean service time by exponential smoothing.
///
/// About the last hundred requests count. That is quick enough to follow a change in the mix of
/// requests and slow enough not to follow a single one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MeanService {
    mean: Span,
    seen: u32,
}

/// The weight of a new measurement once there are enough of them.
const WEIGHT: f64 = 1.0 / 64.0;

impl MeanService {
    /// A mean without any measurement.
    pub const UNKNOWN: Self = Self { mean: Span::ZERO, seen: 0 };

    /// Creates a mean of `seen` measurements, as [`MeanService::mean`] and [`MeanService::seen`]
    /// returned them earlier. The more measurements there were, the less the next one changes the
    /// mean.
    pub const fn new(mean: Span, seen: u32) -> Self {
        Self { mean, seen }
    }

    /// Adds the service time of one more request.
    pub(crate) fn learn(&mut self, service: Span) {
        self.seen = self.seen.saturating_add(1);
        // The plain mean is used at first, so that the first request does not keep too much weight.
        let weight = WEIGHT.max(1.0 / f64::from(self.seen));
        self.mean = self.mean.scale(1.0 - weight) + service.scale(weight);
    }

    /// Returns the mean; zero while nothing is known.
    pub const fn mean(&self) -> Span {
        self.mean
    }

    /// Returns the number of measurements. The count saturates.
    pub const fn seen(&self) -> u32 {
        self.seen
    }
}
