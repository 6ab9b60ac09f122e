//! Order statistics of small samples, without assumptions about the distribution.

use serde_json::{Value, json};

/// The minimum, the median and the maximum of a sample. Tables show them as `median [min–max]`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    /// Smallest value of the sample.
    pub min: f64,
    /// Middle value of the sample; in a sample of even size, the mean of the two middle values.
    pub median: f64,
    /// Largest value of the sample.
    pub max: f64,
}

impl Spread {
    /// Returns the spread of `sample`; `None` if `sample` is empty.
    pub fn of(sample: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut sorted: Vec<f64> = sample.into_iter().collect();
        sorted.sort_by(f64::total_cmp);
        let (min, max) = (*sorted.first()?, *sorted.last()?);
        let half = sorted.len() / 2;
        let median = if sorted.len().is_multiple_of(2) {
            f64::midpoint(sorted[half - 1], sorted[half])
        } else {
            sorted[half]
        };
        Some(Self { min, median, max })
    }

    /// Formats the spread as `12.3 [11.9–13.0]`, with `decimals` decimals.
    pub fn show(&self, decimals: usize) -> String {
        let Self { min, median, max } = self;
        format!("{median:.decimals$} [{min:.decimals$}–{max:.decimals$}]")
    }

    /// Returns the spread as JSON for a report.
    pub fn json(&self) -> Value {
        json!({ "median": self.median, "min": self.min, "max": self.max })
    }

    /// Returns the largest minus the smallest value, divided by the median.
    pub fn width(&self) -> f64 {
        (self.max - self.min) / self.median
    }
}

/// Returns the quantile `p` (from 0 to 1) of the sample, by nearest rank; `None` if the sample is
/// empty.
pub fn percentile(sample: &[f64], p: f64) -> Option<f64> {
    let mut sorted = sample.to_vec();
    sorted.sort_by(f64::total_cmp);
    let rank = (p * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.max(1) - 1).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_the_nearest_rank() {
        let hundred: Vec<f64> = (1..=100).rev().map(f64::from).collect();
        assert_eq!(percentile(&hundred, 0.5), Some(50.0));
        assert_eq!(percentile(&hundred, 0.99), Some(99.0));
        assert_eq!(percentile(&hundred, 1.0), Some(100.0));
        assert_eq!(percentile(&[3.0], 0.01), Some(3.0));
        assert_eq!(percentile(&[], 0.5), None);
    }

    #[test]
    fn a_spread_names_the_extremes_and_the_middle() {
        let odd = Spread::of([3.0, 1.0, 2.0]).unwrap();
        assert_eq!(odd.show(1), "2.0 [1.0–3.0]");
        assert!((odd.width() - 1.0).abs() < 1e-9);
        assert!((Spread::of([4.0, 1.0, 2.0, 3.0]).unwrap().median - 2.5).abs() < 1e-9);
        assert!(Spread::of([]).is_none());
    }
}
