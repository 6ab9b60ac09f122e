//! What a shop has done so far, for `/-/stats` and for tests.
//!
//! For every stage `received = refused + skipped + answered + wasted` once nothing waits or runs.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::Stage;

/// A reading of the whole shop. The counters are read one by one while work goes on: sums are
/// exact only when the shop is idle.
#[derive(Clone, Debug, Serialize)]
pub struct Stats {
    /// Per stage, in walking order; always all eight.
    pub stages: BTreeMap<Stage, StageStats>,
    /// Microseconds of workers' time that ended in an answer to a client still there.
    pub busy_us_useful: u64,
    /// Microseconds of workers' time for clients that had left. What a better shop would save.
    pub busy_us_wasted: u64,
    /// Requests waiting for a worker now.
    pub queue_length: usize,
    /// Workers that run a request now.
    pub running: usize,
    /// Clients that left between sending their request and getting the answer.
    pub departed: u64,
    /// Committed orders since the database file was made.
    pub orders: u64,
    /// How many requests can run at a time.
    pub workers: usize,
    /// How many requests can wait.
    pub backlog: usize,
}

/// What has become of the requests of one stage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct StageStats {
    /// Well-formed requests.
    pub received: u64,
    /// Turned away with 503, because the queue was full or the shop was closing.
    pub refused: u64,
    /// Left the queue without work, because the client had gone (only with `notice_close`).
    pub skipped: u64,
    /// Answered, whatever the status, to a client that was still there.
    pub answered: u64,
    /// Of the answered and wasted: those on which the database failed (500). Look at stderr.
    pub failed: u64,
    /// Worked on, wholly or in part, without anybody to take the answer.
    pub wasted: u64,
    /// Microseconds of workers' time behind `answered`.
    pub busy_us_useful: u64,
    /// Microseconds of workers' time behind `wasted`.
    pub busy_us_wasted: u64,
}

impl Stats {
    /// The numbers of one stage.
    pub fn stage(&self, stage: Stage) -> StageStats {
        self.stages.get(&stage).copied().unwrap_or_default()
    }
}
