//! A histogram of durations without a lock, so that workers do not wait for each other. The
//! histogram of the library `prometheus_client` is behind a mutex.
//!
//! A scrape may see a sum that is one request ahead of the buckets, or behind them. The total count
//! is computed from the buckets, so the total and the buckets always agree.

use std::fmt::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bywash_units::TimeSpan;
use prometheus_client::encoding::{EncodeMetric, MetricEncoder};
use prometheus_client::metrics::{MetricType, TypedMetric};

use super::class::BUCKETS;
use super::snapshot::{self, Buckets};

/// A histogram of durations. Clones share their counts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Durations(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    /// The number of durations in each bucket, not cumulative. The last bucket has no upper bound.
    buckets: [AtomicU64; BUCKETS.len() + 1],
    /// The sum of all durations in microseconds. It overflows after half a million years.
    sum: AtomicU64,
}

impl Durations {
    pub(crate) fn observe(&self, span: TimeSpan) {
        let seconds = span.as_secs_f64();
        // A bucket includes its upper bound, as in Prometheus.
        let place = BUCKETS.iter().position(|bound| seconds <= *bound).unwrap_or(BUCKETS.len());
        self.0.buckets[place].fetch_add(1, Ordering::Relaxed);
        self.0.sum.fetch_add(span.as_micros(), Ordering::Relaxed);
    }

    pub(super) fn read(&self) -> Buckets {
        let bounds = BUCKETS.into_iter().chain([f64::INFINITY]);
        let counts = self.0.buckets.iter().map(|count| count.load(Ordering::Relaxed));
        (bounds.zip(counts).collect(), self.0.sum.load(Ordering::Relaxed) as f64 / 1e6)
    }
}

impl EncodeMetric for Durations {
    fn encode(&self, encoder: MetricEncoder<'_>) -> Result<(), Error> {
        snapshot::encode(&self.read(), encoder)
    }

    fn metric_type(&self) -> MetricType {
        Self::TYPE
    }
}

impl TypedMetric for Durations {
    const TYPE: MetricType = MetricType::Histogram;
}

#[cfg(test)]
mod tests {
    use prometheus_client::encoding::text::encode;
    use prometheus_client::metrics::histogram::Histogram;
    use prometheus_client::registry::Registry;

    use super::*;

    /// Returns the text of a registry that contains only this metric.
    fn text(metric: impl prometheus_client::registry::Metric) -> String {
        let (mut registry, mut text) = (Registry::default(), String::new());
        registry.register("a", "A", metric);
        encode(&mut text, &registry).unwrap();
        text
    }

    #[test]
    fn it_reads_as_that_of_the_library() {
        let (ours, theirs) = (Durations::default(), Histogram::new(BUCKETS));
        for micros in [0, 999, 1000, 1001, 500_000, 30_000_000, 30_000_001, 86_400_000_000] {
            ours.observe(TimeSpan::from_micros(micros));
            theirs.observe(micros as f64 / 1e6);
        }
        let sum = |text: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix("a_sum ")).unwrap();
            line.parse::<f64>().unwrap()
        };
        let (ours, theirs) = (text(ours), text(theirs));
        assert!((sum(&ours) - sum(&theirs)).abs() < 1e-6, "{ours}");
        let rest = |text: &str| text.lines().filter(|l| !l.contains("_sum")).collect::<String>();
        assert_eq!(rest(&ours), rest(&theirs));
    }
}
