//! The statistics of a shop, for `/-/stats` and for tests.
//!
//! For every stage `received = refused + skipped + answered + wasted` once nothing waits or runs.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::Stage;

/// A reading of the whole shop. The counters are read one by one while work continues, so that sums
/// are exact only when the shop is idle.
#[derive(Clone, Debug, Serialize)]
pub struct Stats {
    /// Statistics of each stage, in the order of a visit; always all eight.
    pub stages: BTreeMap<Stage, StageStats>,
    /// Workers' time that ended in an answer to a client that had not left, in microseconds.
    pub busy_us_useful: u64,
    /// Workers' time for clients that had left, in microseconds. Stopping at departure would save
    /// it.
    pub busy_us_wasted: u64,
    /// Requests waiting for a worker now.
    pub queue_length: usize,
    /// Workers that run a request now.
    pub running: usize,
    /// Clients that left between sending their request and getting the answer.
    pub departed: u64,
    /// Orders committed since the database file was created.
    pub orders: u64,
    /// The number of requests that can run at a time.
    pub workers: usize,
    /// The number of requests that can wait.
    pub backlog: usize,
}

/// The outcomes of the requests of one stage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct StageStats {
    /// Well-formed requests.
    pub received: u64,
    /// Rejected with 503, because the queue was full or the shop was closing.
    pub refused: u64,
    /// Removed from the queue without work, because the client had left (only with `notice_close`).
    pub skipped: u64,
    /// Answered, whatever the status, to a client that had not left.
    pub answered: u64,
    /// Requests within `answered` and `wasted` for which the database failed (500). See stderr.
    pub failed: u64,
    /// Worked on, wholly or in part, without a client to receive the answer.
    pub wasted: u64,
    /// Workers' time for `answered`, in microseconds.
    pub busy_us_useful: u64,
    /// Workers' time for `wasted`, in microseconds.
    pub busy_us_wasted: u64,
}

impl Stats {
    /// Returns the numbers of one stage.
    pub fn stage(&self, stage: Stage) -> StageStats {
        self.stages.get(&stage).copied().unwrap_or_default()
    }
}
