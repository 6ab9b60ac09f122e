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
    /// Requests waiting now.
    pub queue_length: usize,
    /// Requests that run now.
    pub running: usize,
    /// Requests with a level that no gateway of ours has signed, or that there is not: served as low.
    pub levels_refused: u64,
    /// Clients that left between sending their request and getting the answer.
    pub departed: u64,
    /// How pages' turns in the pool went, by level.
    pub turns: BTreeMap<Level, TurnStats>,
    /// The promise to the high level, if there is one.
    pub goal: Option<GoalStats>,
    /// How many threads look for banners at a time.
    pub threads: u32,
    /// How many requests can wait, of each level and of the others.
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

/// Turns in the pool: from the arrival of a request to its last thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct TurnStats {
    /// Microseconds: mean.
    pub mean_us: u64,
    /// Standard deviation over mean.
    pub deviation: f64,
    /// Microseconds: median.
    pub median_us: u64,
    /// Microseconds: 95th percentile.
    pub p95_us: u64,
    /// Share of the pool's time in the last seconds.
    pub share: f64,
    /// Requests that run now, and the threads that they have.
    pub running: usize,
    /// As many or more.
    pub threads: u32,
}

/// How far a promise is kept.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct GoalStats {
    /// Whether it is: settling, held, exceeded, infeasible.
    pub verdict: &'static str,
    /// The ratio of the last seconds.
    pub measured: Option<f64>,
    /// The weight of the high level's age.
    pub effort: f64,
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
    /// Requests that the trees left to a scan.
    pub rescans: u64,
}

impl Stats {
    /// The numbers of one level.
    pub fn level(&self, level: Level) -> RequestStats {
        self.levels.get(&level).copied().unwrap_or_default()
    }
}
