//! Counts of response times in buckets. There are eight buckets per doubling of the time, so that a
//! percentile is accurate to one part in 16.

use bywash_units::TimeSpan;

/// The upper bound of the first bucket, in microseconds.
const FIRST: u64 = 64;
/// The number of buckets per doubling of the time; a power of two.
const PER_OCTAVE: u64 = 8;
/// The number of doublings, from 64 µs to more than 15 minutes.
const OCTAVES: usize = 24;

/// The total number of buckets. Times beyond the range are in the last bucket.
pub const BUCKETS: usize = 1 + OCTAVES * PER_OCTAVE as usize;

/// Returns the index of the bucket for a response time.
pub fn bucket(took: TimeSpan) -> usize {
    let micros = took.as_micros();
    if micros < FIRST {
        return 0;
    }
    let octave = micros.ilog2();
    let within = (micros >> (octave - PER_OCTAVE.ilog2())) - PER_OCTAVE;
    let number = u64::from(octave - FIRST.ilog2()) * PER_OCTAVE + within;
    (1 + number as usize).min(BUCKETS - 1)
}

/// Returns the middle of a bucket in milliseconds, which represents all times in it.
fn middle(bucket: usize) -> f64 {
    let Some(number) = bucket.checked_sub(1) else { return FIRST as f64 / 2e3 };
    let (octave, within) = (number as u64 / PER_OCTAVE, number as u64 % PER_OCTAVE);
    let micros = (FIRST << octave) as f64;
    micros * (1.0 + (within as f64 + 0.5) / PER_OCTAVE as f64) / 1e3
}

/// The number of responses in each bucket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Latencies(Box<[u32; BUCKETS]>);

impl Default for Latencies {
    fn default() -> Self {
        Self(Box::new([0; BUCKETS]))
    }
}

impl Latencies {
    /// Creates latencies in which bucket `i` has the count `counts(i)`.
    pub fn of(counts: impl Fn(usize) -> u32) -> Self {
        Self(Box::new(core::array::from_fn(counts)))
    }

    /// Counts a response time.
    pub fn count(&mut self, took: TimeSpan) {
        let one = &mut self.0[bucket(took)];
        *one = one.wrapping_add(1);
    }

    /// Returns the responses counted since the earlier counts `before`. The result is right even if
    /// a counter has wrapped around in between.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        Self::of(|bucket| self.0[bucket].wrapping_sub(before.0[bucket]))
    }

    /// Adds the counts of `more` to these counts.
    pub(crate) fn add(&mut self, more: &Self) {
        for (sum, count) in self.0.iter_mut().zip(more.0.iter()) {
            *sum = sum.saturating_add(*count);
        }
    }

    /// Returns the response time in milliseconds that the fraction `share` of the responses did not
    /// exceed. Returns `None` if there are no responses.
    pub fn percentile(&self, share: f64) -> Option<f32> {
        let all: u64 = self.0.iter().map(|count| u64::from(*count)).sum();
        let wanted = ((all as f64 * share).ceil() as u64).max(1);
        let mut seen = 0;
        let reaches = |count: &u32| {
            seen += u64::from(*count);
            seen >= wanted
        };
        self.0.iter().position(reaches).map(|bucket| middle(bucket) as f32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_time_is_in_a_bucket_whose_middle_is_near() {
        let mut before = 0;
        let mut micros = 1;
        while micros < 800_000_000 {
            let at = bucket(TimeSpan::from_micros(micros));
            assert!(at >= before && at < BUCKETS, "{micros}: {at} after {before}");
            before = at;
            if micros >= FIRST {
                let off = middle(at) * 1e3 / micros as f64 - 1.0;
                assert!(off.abs() <= 1.0 / 16.0 + 1e-9, "{micros}: {off}");
            }
            micros += 1 + micros / 50;
        }
        assert_eq!(bucket(TimeSpan::from_secs(1_000_000)), BUCKETS - 1);
        assert_eq!(bucket(TimeSpan::ZERO), 0);
    }

    #[test]
    fn a_percentile_is_of_what_was_counted_since() {
        let mut latencies = Latencies::default();
        assert_eq!(latencies.percentile(0.5), None);
        latencies.count(TimeSpan::from_secs(10));
        let before = latencies.clone();
        (0..99).for_each(|_| latencies.count(TimeSpan::from_millis(10)));
        latencies.count(TimeSpan::from_millis(1000));
        let since = latencies.since(&before);
        assert!((since.percentile(0.5).unwrap() - 10.0).abs() < 0.7);
        assert!((since.percentile(0.99).unwrap() - 10.0).abs() < 0.7);
        assert!((since.percentile(0.995).unwrap() - 1000.0).abs() < 63.0);
        let wrapped = Latencies::of(|_| u32::MAX);
        let after = Latencies::of(|bucket| u32::from(bucket == 9));
        assert_eq!(after.since(&wrapped).0[9], 2);
    }
}
