//! Response times: recorded in a histogram, and reported in a bounded number of points.
//!
//! A distribution is reported at points of the E24 series of preferred numbers (IEC 60063: 24 per
//! decade, each about 10 % above the previous one). The series contains the round values that
//! papers and service-level objectives state (0.1, 1.5, 2, 10). The points are the same for every
//! run, so that two distributions can be compared point by point.

use bywash_units::TimeSpan;
use hdrhistogram::Histogram;

use crate::result::EmpiricalCdf;

/// One decade of the E24 series, multiplied by ten.
const E24: [u64; 24] = [
    10, 11, 12, 13, 15, 16, 18, 20, 22, 24, 27, 30, 33, 36, 39, 43, 47, 51, 56, 62, 68, 75, 82, 91,
];
/// The maximum number of points of a distribution. If the points span more than five decades, only
/// every second or third point is kept.
const MOST_POINTS: usize = 120;

/// Response times of completed requests, in microseconds.
#[derive(Clone, Debug)]
pub(crate) struct Responses(Histogram<u64>);

impl Responses {
    pub(crate) fn new() -> Self {
        // The range is 1 µs to a day, at two significant digits. Reports state fewer digits.
        let histogram = Histogram::new_with_bounds(1, 86_400_000_000, 2)
            .expect("constant bounds, low < high, 2 digits");
        Self(histogram)
    }

    pub(crate) fn record(&mut self, response: TimeSpan) {
        self.0.saturating_record(response.as_micros().max(1));
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.0.add(&other.0).expect("both histograms have the same bounds");
    }

    pub(crate) fn quantile_ms(&self, quantile: f64) -> f64 {
        self.0.value_at_quantile(quantile) as f64 / 1e3
    }

    /// Returns the mean response time in milliseconds; 0 if nothing was completed.
    pub(crate) fn mean_ms(&self) -> f64 {
        self.0.mean() / 1e3
    }

    /// Returns the longest response time in milliseconds; 0 if nothing was completed.
    pub(crate) fn longest_ms(&self) -> f64 {
        self.0.max() as f64 / 1e3
    }

    /// Returns the standard deviation of the response times divided by their mean; 0 if nothing was
    /// completed.
    pub(crate) fn deviation(&self) -> f64 {
        if self.0.is_empty() { 0.0 } else { self.0.stdev() / self.0.mean() }
    }

    /// Returns the cumulative distribution of the response times. Its first point is the last one
    /// with a share below one in a thousand, because a few fast answers would otherwise fill half
    /// of a logarithmic axis. Its last point is the first one with share 1.
    pub(crate) fn cdf(&self) -> EmpiricalCdf {
        let total = self.0.len();
        let mut points: Vec<(f64, f64)> = Vec::new();
        let mut recorded = self.0.iter_recorded().peekable();
        let mut within = 0;
        for limit in grid() {
            // A value in the same bucket as the limit counts as within it. The histogram resolves
            // values to one part in a hundred, and a service that takes 120 ms is complete after
            // 120 ms.
            let begun = |value: u64| self.0.lowest_equivalent(value) <= limit;
            while let Some(step) = recorded.next_if(|step| begun(step.value_iterated_to())) {
                within += step.count_since_last_iteration();
            }
            if within * 1000 < total {
                points.clear();
            }
            points.push((limit as f64 / 1e3, rounded(within as f64 / total as f64)));
            if within == total {
                break;
            }
        }
        if total == 0 { EmpiricalCdf::default() } else { EmpiricalCdf(thinned(points)) }
    }
}

/// Returns the points of the E24 series from 10 µs to about 25 hours, in µs.
fn grid() -> impl Iterator<Item = u64> {
    (0..10).flat_map(|decade| E24.map(|step| step * 10_u64.pow(decade)))
}

/// Rounds a share to six decimals. Further digits are noise, and make the JSON large.
fn rounded(share: f64) -> f64 {
    (share * 1e6).round() / 1e6
}

/// Returns at most [`MOST_POINTS`] of `points`, evenly spaced and including the last one.
fn thinned(points: Vec<(f64, f64)>) -> Vec<(f64, f64)> {
    let every = points.len().div_ceil(MOST_POINTS);
    let last = points.len().saturating_sub(1);
    let kept = |(i, point): (usize, _)| (last - i).is_multiple_of(every.max(1)).then_some(point);
    points.into_iter().enumerate().filter_map(kept).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(spans: impl IntoIterator<Item = TimeSpan>) -> EmpiricalCdf {
        let mut responses = Responses::new();
        spans.into_iter().for_each(|span| responses.record(span));
        responses.cdf()
    }

    #[test]
    fn a_distribution_says_what_share_was_answered_within_each_point() {
        // One response time for each millisecond from 1 ms to 1,000 ms.
        let told = of((1..=1000).map(TimeSpan::from_millis));
        for (ms, share) in [(10.0, 0.01), (100.0, 0.1), (150.0, 0.15), (750.0, 0.75)] {
            let found = told.0.iter().find(|(at, _)| (at - ms).abs() < 1e-9).unwrap().1;
            // The histogram has two significant digits, and a value in the same bucket as the limit
            // counts as within the limit.
            assert!((share..=share * 1.011).contains(&found), "{ms} ms: {found}");
        }
        assert!(told.0.first().unwrap().1 < 1e-9, "{told:?}");
        assert!(told.0.last().unwrap().1 > 1.0 - 1e-9, "{told:?}");
        assert!(told.0.is_sorted_by(|a, b| a.0 < b.0 && a.1 <= b.1));
    }

    #[test]
    fn a_distribution_is_bounded_whatever_it_spans() {
        let wide = of([10, 50, 1_000_000, 86_000_000_000].map(TimeSpan::from_micros));
        assert!((60..=MOST_POINTS).contains(&wide.0.len()), "{}", wide.0.len());
        assert!(wide.0.last().unwrap().1 > 1.0 - 1e-9, "{wide:?}");
    }

    #[test]
    fn nobody_answered_is_no_distribution() {
        assert_eq!(of([]), EmpiricalCdf::default());
    }
}
