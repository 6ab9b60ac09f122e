//! The smoothed mean service time of requests.

use bywash_units::TimeSpan;

/// The exponentially weighted mean of service times (the times for which requests held a slot).
///
/// It depends mostly on the last hundred requests. So it follows a change in the mix of requests
/// quickly, but not a single request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MeanService {
    mean: TimeSpan,
    seen: u32,
}

/// The weight of a new measurement once there are 64 or more.
const WEIGHT: f64 = 1.0 / 64.0;

impl MeanService {
    /// The mean before any measurement.
    pub const UNKNOWN: Self = Self { mean: TimeSpan::ZERO, seen: 0 };

    /// Creates the mean that an earlier one had reached, from its [`MeanService::mean`] and
    /// [`MeanService::seen`]. The more measurements `seen` counts, the less the next one changes
    /// the mean.
    pub const fn new(mean: TimeSpan, seen: u32) -> Self {
        Self { mean, seen }
    }

    /// Adds the service time of one more request.
    pub(crate) fn learn(&mut self, service: TimeSpan) {
        self.seen = self.seen.saturating_add(1);
        // At first the plain mean is used. Otherwise the first request would keep too much weight.
        let weight = WEIGHT.max(1.0 / f64::from(self.seen));
        self.mean = self.mean.scale(1.0 - weight) + service.scale(weight);
    }

    /// Returns the mean service time; zero while nothing has been measured.
    pub const fn mean(&self) -> TimeSpan {
        self.mean
    }

    /// Returns the total number of measurements. The count saturates.
    pub const fn seen(&self) -> u32 {
        self.seen
    }
}
