//! A histogram of response times that all workers count in without a lock.

use std::sync::atomic::{AtomicU32, Ordering};

use bywash_history::{BUCKETS, Latencies, bucket};
use bywash_units::TimeSpan;

/// The number of responses in each bucket of response times. The counts may wrap around, because
/// readers use only differences.
pub(crate) struct LiveLatencies(Box<[AtomicU32; BUCKETS]>);

impl Default for LiveLatencies {
    fn default() -> Self {
        Self(Box::new([const { AtomicU32::new(0) }; BUCKETS]))
    }
}

impl LiveLatencies {
    pub(crate) fn count(&self, took: TimeSpan) {
        self.0[bucket(took)].fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn read(&self) -> Latencies {
        Latencies::of(|bucket| self.0[bucket].load(Ordering::Relaxed))
    }
}
