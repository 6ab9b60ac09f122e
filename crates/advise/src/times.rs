//! A distribution of times in bounded memory.

use bywash_units::Span;
use hdrhistogram::Histogram;
use serde::Serialize;

/// A day in microseconds.
const LONGEST: u64 = 86_400_000_000;

/// Times from a microsecond to a day, each known to two digits. Nothing is held before the first.
#[derive(Clone, Debug, Default)]
pub struct Times(Option<Box<Histogram<u64>>>);

/// What is told of a distribution: seconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Quantiles {
    /// How many there are.
    pub count: u64,
    /// Their mean.
    pub mean: f64,
    /// Half of them are shorter.
    pub p50: f64,
    /// Nine in ten are shorter.
    pub p90: f64,
    /// Of a hundred one is longer.
    pub p99: f64,
}

impl Times {
    /// One more.
    pub fn add(&mut self, time: Span) {
        let times = self.0.get_or_insert_with(|| Box::new(empty()));
        times.saturating_record(time.as_micros().max(1));
    }

    /// Those of another.
    pub(crate) fn merge(&mut self, other: Self) {
        match (&mut self.0, other.0) {
            (Some(own), Some(others)) => own.add(&*others).expect("their bounds are the same"),
            (own @ None, others) => *own = others,
            (Some(_), None) => {}
        }
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.0.as_ref().map_or(0, |times| times.len())
    }

    /// Their mean; nothing of none.
    pub fn mean(&self) -> Option<Span> {
        let times = self.0.as_ref().filter(|times| !times.is_empty())?;
        Some(Span::from_secs_f64(times.mean() / 1e6))
    }

    /// So many of a hundred are no longer.
    pub fn at(&self, share: f64) -> Option<Span> {
        let times = self.0.as_ref().filter(|times| !times.is_empty())?;
        Some(Span::from_micros(times.value_at_quantile(share)))
    }

    /// What is told of it; nothing of none.
    pub fn quantiles(&self) -> Option<Quantiles> {
        let times = self.0.as_ref().filter(|times| !times.is_empty())?;
        let at = |share| times.value_at_quantile(share) as f64 / 1e6;
        let (p50, p90, p99) = (at(0.5), at(0.9), at(0.99));
        Some(Quantiles { count: times.len(), mean: times.mean() / 1e6, p50, p90, p99 })
    }

    /// Each time that there is, in order, and how often.
    pub(crate) fn each(&self) -> impl Iterator<Item = (Span, u64)> + '_ {
        let recorded = self.0.iter().flat_map(|times| times.iter_recorded());
        recorded
            .map(|it| (Span::from_micros(it.value_iterated_to()), it.count_since_last_iteration()))
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
        (1..=1000).for_each(|ms| times.add(Span::from_millis(ms)));
        let told = times.quantiles().unwrap();
        for (is, should) in
            [(told.p50, 0.5), (told.p90, 0.9), (told.p99, 0.99), (told.mean, 0.5005)]
        {
            assert!((is / should - 1.0).abs() < 0.01, "{is} for {should}");
        }
        times.add(Span::ZERO);
        times.add(Span::MAX);
        assert_eq!(times.count(), 1002);
        assert!(times.at(1.0).unwrap() <= Span::from_secs(87_000));
    }

    #[test]
    fn two_are_as_one() {
        let (mut one, mut other) = (Times::default(), Times::default());
        one.add(Span::from_secs(1));
        other.add(Span::from_secs(3));
        one.merge(other.clone());
        other.merge(Times::default());
        assert_eq!((one.count(), other.count()), (2, 1));
        assert_eq!(one.each().map(|(_, count)| count).sum::<u64>(), 2);
    }
}
