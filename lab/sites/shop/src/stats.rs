//! The statistics of a shop, for `/-/stats` and for tests.
//!
//! For every stage `received = refused + skipped + answered + wasted`, once no request waits or
//! runs.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::Stage;

/// The statistics of the whole shop. They count from the start of the shop unless stated otherwise.
/// The counters are read one after another while work continues, so sums of them are exact only
/// when the shop is idle.
#[derive(Clone, Debug, Serialize)]
pub struct Stats {
    /// The statistics of all eight stages, in the order of a visit.
    pub stages: BTreeMap<Stage, StageStats>,
    /// Total time that workers spent on requests that were answered before the client left, in
    /// microseconds.
    pub busy_us_useful: u64,
    /// Total time that workers spent on requests whose client left before the answer, in
    /// microseconds. A shop that stops work when a client leaves would not spend this time.
    pub busy_us_wasted: u64,
    /// The number of requests that wait for a worker now.
    pub queue_length: usize,
    /// The number of workers that run a request now.
    pub running: usize,
    /// The number of clients that left between sending their request and getting the answer.
    pub departed: u64,
    /// The number of orders committed since the database file was created.
    pub orders: u64,
    /// The number of requests that can run at the same time.
    pub workers: usize,
    /// The maximum number of requests that wait for a worker.
    pub backlog: usize,
}

/// The outcomes of the requests of one stage, since the shop started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct StageStats {
    /// The number of well-formed requests.
    pub received: u64,
    /// The number of requests rejected with 503, because the queue was full or the shop was
    /// closing.
    pub refused: u64,
    /// The number of requests removed from the queue without work, because the client had left
    /// (only with `notice_close`).
    pub skipped: u64,
    /// The number of requests answered, whatever the status, to a client that had not left.
    pub answered: u64,
    /// The number of requests for which the database failed (500). They also count in `answered` or
    /// `wasted`. Standard error has the reasons.
    pub failed: u64,
    /// The number of requests that were worked on, wholly or in part, and whose client had left
    /// before the answer.
    pub wasted: u64,
    /// Total time that workers spent on the requests of `answered`, in microseconds.
    pub busy_us_useful: u64,
    /// Total time that workers spent on the requests of `wasted`, in microseconds.
    pub busy_us_wasted: u64,
}

impl Stats {
    /// Returns the statistics of `stage`.
    pub fn stage(&self, stage: Stage) -> StageStats {
        self.stages.get(&stage).copied().unwrap_or_default()
    }
}
