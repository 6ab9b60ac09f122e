//! A histogram that is counted elsewhere and copied at a scrape.

use std::fmt::Error;
use std::sync::{Arc, Mutex, PoisonError};

use prometheus_client::encoding::{EncodeMetric, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::{MetricType, TypedMetric};

/// A histogram as it was last copied. Clones share the copy.
#[derive(Clone, Debug, Default)]
pub(crate) struct Snapshot(Arc<Mutex<Buckets>>);

/// The upper bound of each bucket in seconds with its count, and the sum of all durations in
/// seconds.
pub(crate) type Buckets = (Vec<(f64, u64)>, f64);

impl Snapshot {
    pub(crate) fn set(&self, buckets: Buckets) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = buckets;
    }
}

impl EncodeMetric for Snapshot {
    fn encode(&self, encoder: MetricEncoder<'_>) -> Result<(), Error> {
        encode(&self.0.lock().unwrap_or_else(PoisonError::into_inner), encoder)
    }

    fn metric_type(&self) -> MetricType {
        Self::TYPE
    }
}

impl TypedMetric for Snapshot {
    const TYPE: MetricType = MetricType::Histogram;
}

pub(super) fn encode(
    (buckets, seconds): &Buckets,
    mut encoder: MetricEncoder<'_>,
) -> Result<(), Error> {
    let all = buckets.iter().map(|(_, count)| count).sum();
    encoder.encode_histogram::<NoLabelSet>(*seconds, all, buckets, None)
}
