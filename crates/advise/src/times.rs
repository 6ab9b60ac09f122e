//! A distribution of times in bounded memory.

use bywash_units::TimeSpan;
use hdrhistogram::Histogram;
use serde::Serialize;

/// The longest time that is distinguished: a day, in microseconds.
const LONGEST: u64 = 86_400_000_000;

/// A histogram of times from a microsecond to a day, with two significant digits. It allocates
/// nothing until the first time is added.
#[derive(Clone, Debug, Default)]
pub struct Times(Option<Box<Histogram<u64>>>);

/// A summary of a distribution, in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Quantiles {
    /// The number of values.
    pub count: u64,
    /// The mean, in seconds.
    pub mean: f64,
    /// The median, in seconds.
    pub p50: f64,
    /// The 90th percentile, in seconds.
    pub p90: f64,
    /// The 99th percentile, in seconds.
    pub p99: f64,
}

impl Times {
    /// Adds a time.
    pub fn add(&mut self, time: TimeSpan) {
        let times = self.0.get_or_insert_with(|| Box::new(empty()));
        times.saturating_record(time.as_micros().max(1));
    }

    /// Adds the times of another distribution.
    pub(crate) fn merge(&mut self, other: Self) {
        match (&mut self.0, other.0) {
            (Some(own), Some(others)) => own.add(&*others).expect("their bounds are the same"),
            (own @ None, others) => *own = others,
            (Some(_), None) => {}
        }
    }

    /// Returns the number of times.
    pub fn count(&self) -> u64 {
        self.0.as_ref().map_or(0, |times| times.len())
    }

    /// Returns the mean of the times; `None` if there are none.
    pub fn mean(&self) -> Option<TimeSpan> {
        let times = self.0.as_ref().filter(|times| !times.is_empty())?;
        Some(TimeSpan::from_secs_f64(times.mean() / 1e6))
    }

    /// Returns the quantile at `share`, which is from 0 to 1; `None` if there are no times.
    pub fn at(&self, share: f64) -> Option<TimeSpan> {
        let times = self.0.as_ref().filter(|times| !times.is_empty())?;
        Some(TimeSpan::from_micros(times.value_at_quantile(share)))
    }

    /// Returns a summary of the times; `None` if there are none.
    pub fn quantiles(&self) -> Option<Quantiles> {
        let times = self.0.as_ref().filter(|times| !times.is_empty())?;
        let at = |share| times.value_at_quantile(share) as f64 / 1e6;
        let (p50, p90, p99) = (at(0.5), at(0.9), at(0.99));
        Some(Quantiles { count: times.len(), mean: times.mean() / 1e6, p50, p90, p99 })
    }

    /// Returns each distinct time in order, with its count.
    pub(crate) fn each(&self) -> impl Iterator<Item = (TimeSpan, u64)> + '_ {
        let recorded = self.0.iter().flat_map(|times| times.iter_recorded());
        recorded.map(|it| {
            (TimeSpan::from_micros(it.value_iterated_to()), it.count_since_last_iteration())
        })
    }
}

fn empty() -> Histogram<u64> {
    Histogram::new_with_bounds(1, LONGEST, 2).expect("the bounds are a constant")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_known_to_two_digits() {
        let mut times = Times::default();
        assert_eq!((times.quantiles(), times.count()), (None, 0));
        (1..=1000).for_each(|ms| times.add(TimeSpan::from_millis(ms)));
        let quantiles = times.quantiles().unwrap();
        for (is, should) in [
            (quantiles.p50, 0.5),
            (quantiles.p90, 0.9),
            (quantiles.p99, 0.99),
            (quantiles.mean, 0.5005),
        ] {
            assert!((is / should - 1.0).abs() < 0.01, "{is} for {should}");
        }
        times.add(TimeSpan::ZERO);
        times.add(TimeSpan::MAX);
        assert_eq!(times.count(), 1002);
        assert!(times.at(1.0).unwrap() <= TimeSpan::from_secs(87_000));
    }

    #[test]
    fn two_are_as_one() {
        let (mut one, mut other) = (Times::default(), Times::default());
        one.add(TimeSpan::from_secs(1));
        other.add(TimeSpan::from_secs(3));
        one.merge(other.clone());
        other.merge(Times::default());
        assert_eq!((one.count(), other.count()), (2, 1));
        assert_eq!(one.each().map(|(_, count)| count).sum::<u64>(), 2);
    }
}
