//! The statistics of an ad server, for `/stats` and for tests.
//!
//! When no request waits or runs, `received = refused + answered + failed + orphaned` holds for
//! every kind of request.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::{Level, Selection};

/// The statistics of the whole server since its start. The counters are read one by one while the
/// server works, so sums are exact only when the server is idle.
#[derive(Clone, Debug, Serialize)]
pub struct Stats {
    /// The outcomes of the pages' requests for banners, by level.
    pub levels: BTreeMap<Level, RequestStats>,
    /// The outcomes of the requests for clicks on banners.
    pub clicks: RequestStats,
    /// The outcomes of the requests to the admin API, about concepts, publishers, slots and
    /// contracts.
    pub office: RequestStats,
    /// The totals of selecting banners.
    pub selections: SelectionStats,
    /// The total number of counted clicks: the first click on each placement.
    pub clicks_counted: u64,
    /// The total number of repeated clicks on a placement, which were answered and not counted.
    pub clicks_repeated: u64,
    /// The number of requests that wait now, in the pool and for a worker.
    pub queue_length: usize,
    /// The number of requests that are being served now.
    pub running: usize,
    /// The total number of requests with a level that no trusted gateway has signed, or that does
    /// not exist. They are served with the level `low`.
    pub levels_refused: u64,
    /// The total number of clients that left after they had sent a request and before they got the
    /// answer.
    pub departed: u64,
    /// The statistics of the pages in the pool, by level.
    pub turns: BTreeMap<Level, TurnStats>,
    /// The state of the goal for the level `high`; `None` without a goal.
    pub goal: Option<GoalStats>,
    /// The number of threads in the pool, which select banners.
    pub threads: u32,
    /// The maximum number of waiting requests. It applies to each level and to the admin API
    /// separately.
    pub backlog: usize,
}

/// The outcomes of the requests of one kind since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RequestStats {
    /// The number of well-formed requests received.
    pub received: u64,
    /// The number of requests answered with 503, because a queue was full or the server was
    /// closing.
    pub refused: u64,
    /// The number of requests that got an answer with any other status while the client was still
    /// connected.
    pub answered: u64,
    /// The number of requests answered with 500, because the database failed or a page panicked.
    /// The cause is on stderr.
    pub failed: u64,
    /// The number of requests whose client had left. They were not served, or their answer was
    /// discarded.
    pub orphaned: u64,
    /// The sum of the latencies of all `answered` requests, in microseconds. A latency lasts from
    /// the end of reading the request to its answer.
    pub latency_us: u64,
    /// The mean latency of the `answered` requests, in microseconds.
    pub mean_latency_us: u64,
}

/// The statistics of the pages of one level in the pool. A response time lasts from the arrival of
/// a page to the end of its last thread.
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
    /// The level's share, from 0 to 1, of the thread time that all levels used in the last seconds.
    pub share: f64,
    /// The number of pages of this level that run now.
    pub running: usize,
    /// The number of threads that the running pages of this level hold now.
    pub threads: u32,
}

/// The state of the goal for the level `high`. The goal is a ratio: the mean response time of the
/// level divided by that of the level `low`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct GoalStats {
    /// The result of the goal: `settling`, `held`, `exceeded` or `infeasible`.
    pub verdict: &'static str,
    /// The measured ratio in the last seconds. `None` if it is not known.
    pub measured: Option<f64>,
    /// The output of the controller of the goal: the factor by which the age of a waiting page of
    /// the level `high` counts.
    pub effort: f64,
}

/// The totals of selecting banners since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SelectionStats {
    /// The method by which banners are selected.
    pub by: Selection,
    /// The number of pages that requested banners.
    pub pages: u64,
    /// The number of banners placed on pages.
    pub placed: u64,
    /// The number of wanted banners for which none could be placed.
    pub empty: u64,
    /// The number of selections that a scan had to complete. A selection draws banners at random,
    /// and rejects those that the page cannot show. After too many rejected draws for one banner, a
    /// scan chooses the remaining banners.
    pub rescans: u64,
}

impl Stats {
    /// Returns the outcomes of the requests of one level; all zero if the level is missing.
    pub fn level(&self, level: Level) -> RequestStats {
        self.levels.get(&level).copied().unwrap_or_default()
    }
}
