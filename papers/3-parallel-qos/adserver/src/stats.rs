//! The statistics of an ad server, for `/stats` and for tests.
//!
//! For every kind of request, `received = refused + answered + failed + orphaned` once no request
//! waits or runs.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::{Level, Selection};

/// The statistics of the whole server. The counters are read one by one while the server works, so
/// sums are exact only when it is idle.
#[derive(Clone, Debug, Serialize)]
pub struct Stats {
    /// Requests for banners, by level.
    pub levels: BTreeMap<Level, RequestStats>,
    /// Clicks on banners.
    pub clicks: RequestStats,
    /// Requests to the admin API: everything about concepts, publishers, slots and contracts.
    pub office: RequestStats,
    /// Statistics of selecting banners.
    pub selections: SelectionStats,
    /// Clicks that were the first on their placement, and were counted.
    pub clicks_counted: u64,
    /// Repeated clicks on a placement, which were answered and not counted.
    pub clicks_repeated: u64,
    /// Requests that wait now.
    pub queue_length: usize,
    /// Requests that run now.
    pub running: usize,
    /// Requests with a level that no gateway with our keys has signed, or that does not exist. They
    /// are served as low.
    pub levels_refused: u64,
    /// Clients that left after they sent their request and before they got the answer.
    pub departed: u64,
    /// Statistics of the pages in the pool, by level.
    pub turns: BTreeMap<Level, TurnStats>,
    /// The state of the high level's goal, if there is one.
    pub goal: Option<GoalStats>,
    /// The number of threads that select banners at a time.
    pub threads: u32,
    /// The number of requests of each level, and of the admin API, that can wait.
    pub backlog: usize,
}

/// The outcomes of the requests of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RequestStats {
    /// Well-formed requests.
    pub received: u64,
    /// Rejected with 503, because a queue was full or the server was closing.
    pub refused: u64,
    /// Answered, with any status, while the client was still there.
    pub answered: u64,
    /// Answered with 500, because the database failed or a page panicked. The cause is on stderr.
    pub failed: u64,
    /// Requests whose client had left. Work on them did not begin, or the answer was discarded.
    pub orphaned: u64,
    /// The sum of the latencies of all `answered` requests, in microseconds. A latency lasts from
    /// the end of reading the request to its answer.
    pub latency_us: u64,
    /// The mean latency of an `answered` request, in microseconds.
    pub mean_latency_us: u64,
}

/// Statistics of one level's pages in the pool. A response time lasts from the arrival of a page to
/// the end of its last thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct TurnStats {
    /// The mean response time, in microseconds.
    pub mean_us: u64,
    /// The standard deviation of the response time, divided by its mean.
    pub deviation: f64,
    /// The median response time, in microseconds.
    pub median_us: u64,
    /// The 95th percentile of the response time, in microseconds.
    pub p95_us: u64,
    /// The level's fraction of the slot time that was used in the last seconds, from 0 to 1.
    pub share: f64,
    /// Requests that run now.
    pub running: usize,
    /// The threads of the running requests.
    pub threads: u32,
}

/// The state of a goal.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct GoalStats {
    /// Whether the goal is reached: `settling`, `held`, `exceeded` or `infeasible`.
    pub verdict: &'static str,
    /// The ratio that was measured in the last seconds.
    pub measured: Option<f64>,
    /// The control output: the weight of the high level's age.
    pub effort: f64,
}

/// Statistics of selecting banners.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SelectionStats {
    /// The method of selecting.
    pub by: Selection,
    /// Pages that requested banners.
    pub pages: u64,
    /// Banners placed.
    pub placed: u64,
    /// Places for which there was no banner.
    pub empty: u64,
    /// Selections that the trees left to a scan.
    pub rescans: u64,
}

impl Stats {
    /// Returns the outcomes of the requests of one level.
    pub fn level(&self, level: Level) -> RequestStats {
        self.levels.get(&level).copied().unwrap_or_default()
    }
}
