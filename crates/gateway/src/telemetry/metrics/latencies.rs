//! Response times, counted by all workers at once.

use std::sync::atomic::{AtomicU32, Ordering};

use bywash_history::{BUCKETS, Latencies, bucket};
use bywash_units::TimeSpan;

/// The counts by bucket. They may wrap: readers use differences only.
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
