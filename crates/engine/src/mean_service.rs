//! The mean service time of requests, smoothed.

use bywash_units::TimeSpan;

/// The exponentially weighted mean of service times.
///
/// It depends mostly on the last hundred requests. So it follows a change in the mix of requests
/// quickly, but not a single request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MeanService {
    mean: TimeSpan,
    seen: u32,
}

/// The weight of a new measurement once there are enough of them.
const WEIGHT: f64 = 1.0 / 64.0;

impl MeanService {
    /// A mean without any measurement.
    pub const UNKNOWN: Self = Self { mean: TimeSpan::ZERO, seen: 0 };

    /// Creates a mean of `seen` measurements, as [`MeanService::mean`] and [`MeanService::seen`]
    /// returned them earlier. The more measurements there were, the less the next one changes the
    /// mean.
    pub const fn new(mean: TimeSpan, seen: u32) -> Self {
        Self { mean, seen }
    }

    /// Adds the service time of one more request.
    pub(crate) fn learn(&mut self, service: TimeSpan) {
        self.seen = self.seen.saturating_add(1);
        // The plain mean is used at first, so that the first request does not keep too much weight.
        let weight = WEIGHT.max(1.0 / f64::from(self.seen));
        self.mean = self.mean.scale(1.0 - weight) + service.scale(weight);
    }

    /// Returns the mean; zero while nothing is known.
    pub const fn mean(&self) -> TimeSpan {
        self.mean
    }

    /// Returns the number of measurements. The count saturates.
    pub const fn seen(&self) -> u32 {
        self.seen
    }
}
