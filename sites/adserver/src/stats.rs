//! What an ad server has done so far, for `/stats` and for tests.
//!
//! For every kind of request `received = refused + answered + failed + orphaned` once nothing waits or runs.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::{Level, Selection};

/// A reading of the whole server. The counters are read one by one while work goes on: sums are exact only when it is
/// idle.
#[derive(Clone, Debug, Serialize)]
pub struct Stats {
    /// Requests for banners, by level.
    pub levels: BTreeMap<Level, RequestStats>,
    /// Clicks.
    pub clicks: RequestStats,
    /// Everything about concepts, publishers, slots and contracts.
    pub office: RequestStats,
    /// How banners were selected.
    pub selections: SelectionStats,
    /// Clicks that were the first on their placement, and were counted.
    pub clicks_counted: u64,
    /// Clicks on a placement that had been clicked on: answered, not counted.
    pub clicks_repeated: u64,
    /// Requests waiting for a worker now.
    pub queue_length: usize,
    /// Workers that run a request now.
    pub running: usize,
    /// Clients that left between sending their request and getting the answer.
    pub departed: u64,
    /// How many requests can run at a time.
    pub workers: usize,
    /// How many requests can wait.
    pub backlog: usize,
}

/// What has become of the requests of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RequestStats {
    /// Well-formed requests.
    pub received: u64,
    /// Turned away with 503, because a queue was full or the server was closing.
    pub refused: u64,
    /// Answered, whatever the status, to a client that was still there.
    pub answered: u64,
    /// Answered with 500, because the database failed. Look at stderr.
    pub failed: u64,
    /// Of clients that had left: not begun, or answered to nobody.
    pub orphaned: u64,
    /// Microseconds from the end of reading the request to the answer, all `answered` together.
    pub latency_us: u64,
    /// The same for one of them.
    pub mean_latency_us: u64,
}

/// How banners were selected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SelectionStats {
    /// The way.
    pub by: Selection,
    /// Requests.
    pub pages: u64,
    /// Banners placed.
    pub placed: u64,
    /// Places for which there was no banner.
    pub empty: u64,
    /// Requests that the wheels left to a scan.
    pub rescans: u64,
}

impl Stats {
    /// The numbers of one level.
    pub fn level(&self, level: Level) -> RequestStats {
        self.levels.get(&level).copied().unwrap_or_default()
    }
}
