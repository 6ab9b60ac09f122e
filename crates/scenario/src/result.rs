//! What a run yields: the same shape from the simulator and from a live run.
//!
//! Counts are the columns of seed 1's tables; work and revenue are ours. The JSON names are a
//! promise to whoever reads `--json`.

use serde::Serialize;

/// All cells of one scenario.
#[derive(Clone, Debug, Serialize)]
pub struct RunResult {
    /// Name of the scenario.
    pub scenario: String,
    /// Seeds that every cell was run with.
    pub seeds: Vec<u64>,
    /// Why the figures must not be used, if so: the load generator fell behind its own clock.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub invalid: Option<String>,
    /// One entry for each policy, level of load and visibility of closes.
    pub cells: Vec<Cell>,
}

/// One policy under one load, summed over the seeds.
#[derive(Clone, Debug, Serialize)]
pub struct Cell {
    /// Label of the policy.
    pub policy: String,
    /// Offered load: the run's level; of a load that changes, the one that it changes to.
    pub rho: f64,
    /// `visible` or `hidden`.
    pub closes: &'static str,
    /// Requests made, retries included.
    pub generated: u64,
    /// Answered while the client still waited.
    pub completed: u64,
    /// Given up by the client.
    pub timed_out: u64,
    /// Refused.
    pub dropped: u64,
    /// Answered with an error or not at all, and neither of the two above.
    pub failed: u64,
    /// Meant to be made by a session that was abandoned before.
    pub not_generated: u64,
    /// Service time on requests answered in time, as a share of what steadily was possible: of
    /// capacity while ρ ≥ 1, of the offered work while ρ < 1. After a crowd it can exceed 1, as
    /// what the crowd's visitors still want is served in the calm that follows.
    pub useful_work: f64,
    /// Service time on anything else, as a share of the same. `None` where a live target does
    /// not say how long it worked.
    pub wasted_work: Option<f64>,
    /// Confirmed orders as a share of min(1, 1/ρ) of the orders that visitors meant to make; after a
    /// crowd it can exceed 1, like `useful_work`. Where ρ ≥ 1 to the end, only what is confirmed
    /// before arrivals end counts, so a run should be much longer than a session.
    pub revenue_share: f64,
    /// Standard error of `revenue_share` over the seeds; `None` for one seed.
    pub revenue_error: Option<f64>,
    /// Confirmed orders that count for `revenue_share`.
    pub orders: u64,
    /// Orders that visitors meant to make.
    pub orders_planned: u64,
    /// min(1, 1/ρ) of the orders that visitors meant to make.
    pub orders_possible: f64,
    /// Per class, in the order of the scenario.
    pub classes: Vec<ClassCell>,
    /// Second by second, for the first seed of a run of at most an hour.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub timeline: Vec<Second>,
}

/// One class of a cell.
#[derive(Clone, Debug, Serialize)]
pub struct ClassCell {
    /// Its name.
    pub class: String,
    /// As in [`Cell`].
    pub generated: u64,
    /// As in [`Cell`].
    pub completed: u64,
    /// As in [`Cell`].
    pub timed_out: u64,
    /// As in [`Cell`].
    pub dropped: u64,
    /// As in [`Cell`].
    pub failed: u64,
    /// Response time of completed requests: median, milliseconds.
    pub p50_ms: f64,
    /// 99th percentile, milliseconds.
    pub p99_ms: f64,
}

/// What ended within one second of a run.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Second {
    /// Requests made.
    pub generated: u64,
    /// Answered in time.
    pub completed: u64,
    /// Given up.
    pub timed_out: u64,
    /// Refused.
    pub dropped: u64,
    /// Failed.
    pub failed: u64,
    /// Orders confirmed.
    pub orders: u64,
}
