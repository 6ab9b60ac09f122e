//! What a run yields: the same shape from the simulator and from a live run.
//!
//! Counts are the columns of seed 1's tables; work and revenue are ours. The JSON names are a
//! promise to whoever reads `--json`; what was written is read again by `lab compare`.

use serde::{Deserialize, Serialize};

use crate::adversary::Hostile;
use crate::file::Closes;

/// All cells of one scenario.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RunResult {
    /// Name of the scenario.
    pub scenario: String,
    /// Seeds that every cell was run with.
    pub seeds: Vec<u64>,
    /// Why the figures must not be used, if so: the load generator fell behind its own clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub invalid: Option<String>,
    /// One entry for each policy, level of load and visibility of closes.
    pub cells: Vec<Cell>,
}

/// One policy under one load, summed over the seeds.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Cell {
    /// Label of the policy.
    pub policy: String,
    /// Offered load: the run's level; of a load that changes, the one that it changes to.
    pub rho: f64,
    /// Whether the server side could see a client leave.
    pub closes: Closes,
    /// How long visitors came with each seed.
    #[serde(default)]
    pub duration_s: f64,
    /// Requests made, retries included.
    pub generated: u64,
    /// Answered while the client still waited.
    pub completed: u64,
    /// Given up by the client.
    pub timed_out: u64,
    /// Refused.
    pub dropped: u64,
    /// Stopped while they ran.
    #[serde(default)]
    pub terminated: u64,
    /// Answered with an error or not at all, and neither of the two above.
    #[serde(default)]
    pub failed: u64,
    /// Meant to be made by a session that was abandoned before.
    pub not_generated: u64,
    /// Requests that visitors meant to make: without retries, which `generated` has.
    #[serde(default)]
    pub requests_planned: u64,
    /// Service time on requests answered in time, as a share of what steadily was possible: of
    /// capacity while ρ ≥ 1, of the offered work while ρ < 1. After a crowd it can exceed 1, as
    /// what the crowd's visitors still want is served in the calm that follows.
    pub useful_work: f64,
    /// Standard error of `useful_work` over the seeds; `None` for one seed.
    #[serde(default)]
    pub useful_error: Option<f64>,
    /// Service time on anything else, as a share of the same. `None` where a live target does
    /// not say how long it worked.
    pub wasted_work: Option<f64>,
    /// Confirmed orders as a share of min(1, 1/ρ) of the orders that visitors meant to make; after a
    /// crowd it can exceed 1, like `useful_work`. Where ρ ≥ 1 to the end, only what is confirmed
    /// before arrivals end counts, so a run should be much longer than a session.
    pub revenue_share: f64,
    /// Standard error of `revenue_share` over the seeds; `None` for one seed.
    #[serde(default)]
    pub revenue_error: Option<f64>,
    /// Confirmed orders that count for `revenue_share`.
    pub orders: u64,
    /// Orders that visitors meant to make.
    pub orders_planned: u64,
    /// min(1, 1/ρ) of the orders that visitors meant to make.
    pub orders_possible: f64,
    /// How long after a pulse the servers did useful work as before; none where there is no pulse.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recovery: Option<Recovery>,
    /// What adversaries got; in none of the other figures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hostile: Option<Hostile>,
    /// Response times of completed requests.
    #[serde(default)]
    pub response: TierResponses,
    /// Per class, in the order of the scenario.
    pub classes: Vec<ClassCell>,
    /// The figures of each seed, in the order of the seeds: what their errors are made of.
    #[serde(default)]
    pub per_seed: Vec<SeedFigures>,
    /// Sessions that came to their end within the run.
    #[serde(default)]
    pub sessions: u64,
    /// How long these took on average, from the first request to the last answer, in seconds; 0 if none did. What would
    /// have ended later is not among them [seed 5.8].
    #[serde(default)]
    pub session_s: f64,
    /// Second by second, for a run of at most an hour: the sum over the seeds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub timeline: Vec<Second>,
}

impl Cell {
    /// Everything that visitors meant to ask for, and how often they asked again: the base of the
    /// seed's percentages.
    pub fn base(&self) -> u64 {
        self.generated + self.not_generated
    }
}

/// One class of a cell.
#[derive(Clone, Debug, Serialize, Deserialize)]
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
    #[serde(default)]
    pub terminated: u64,
    /// As in [`Cell`].
    #[serde(default)]
    pub failed: u64,
    /// Response time of completed requests: mean, milliseconds.
    #[serde(default)]
    pub mean_ms: f64,
    /// The same: standard deviation over mean.
    #[serde(default)]
    pub deviation: f64,
    /// Median, milliseconds.
    pub p50_ms: f64,
    /// 99th percentile, milliseconds.
    pub p99_ms: f64,
    /// The longest, milliseconds.
    #[serde(default)]
    pub longest_ms: f64,
    /// All of them.
    #[serde(default, skip_serializing_if = "Distribution::is_empty")]
    pub response: Distribution,
}

/// Response times of completed requests, all together and by tier.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TierResponses {
    /// Of every class.
    #[serde(default, skip_serializing_if = "Distribution::is_empty")]
    pub all: Distribution,
    /// Of those that look.
    #[serde(default, skip_serializing_if = "Distribution::is_empty")]
    pub browse: Distribution,
    /// Of those that earn.
    #[serde(default, skip_serializing_if = "Distribution::is_empty")]
    pub transact: Distribution,
}

/// A cumulative distribution: milliseconds, and the share of completed requests that were answered
/// within; both rise. At most 120 points, the last with share 1; none if nothing was completed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Distribution(pub Vec<(f64, f64)>);

impl Distribution {
    /// Whether nothing was completed.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The share answered within `ms` milliseconds, between two points by a straight line over the
    /// logarithm of time; `None` if nothing was completed.
    pub fn within(&self, ms: f64) -> Option<f64> {
        let above = self.0.partition_point(|(at, _)| *at < ms);
        let (right, left) = (self.0.get(above), above.checked_sub(1).and_then(|i| self.0.get(i)));
        match (left, right) {
            (None, None) => None,
            (None, Some((at, share))) => Some(if *at <= ms { *share } else { 0.0 }),
            (Some((_, share)), None) => Some(*share),
            (Some((x0, y0)), Some((x1, y1))) => {
                let part = libm::log(ms / x0) / libm::log(x1 / x0);
                Some(y0 + (y1 - y0) * part)
            }
        }
    }

    /// The time, in milliseconds, within which a `share` of all was answered: the first point that
    /// reaches it.
    pub fn quantile_ms(&self, share: f64) -> Option<f64> {
        self.0.iter().find(|(_, within)| *within >= share).map(|(ms, _)| *ms)
    }
}

/// How long after the end of a pulse it was as before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recovery {
    /// Seconds from the end of the pulse to the first from which, for ten seconds, useful work was
    /// on average at least 90 % of what it had been before the pulse; `None` if that never came.
    pub seconds: Option<u64>,
}

/// What one seed of a cell came to, as shares.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SeedFigures {
    /// Of everything that was asked or never asked, as in the seed's table.
    pub completed: f64,
    /// Of the same.
    pub timed_out: f64,
    /// Of the same.
    pub dropped: f64,
    /// As in [`Cell`].
    pub useful_work: f64,
    /// As in [`Cell`].
    pub revenue_share: f64,
    /// As in [`Cell`]: tells, with the next, whether two runs had the same visitors.
    pub requests_planned: u64,
    /// As in [`Cell`].
    pub orders_planned: u64,
}

/// What ended within one second of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Second {
    /// Requests made.
    pub generated: u64,
    /// Answered in time.
    pub completed: u64,
    /// Given up.
    pub timed_out: u64,
    /// Refused.
    pub dropped: u64,
    /// Stopped.
    #[serde(default)]
    pub terminated: u64,
    /// Failed.
    #[serde(default)]
    pub failed: u64,
    /// Orders confirmed.
    pub orders: u64,
    /// Service time of the requests that were answered in time, in microseconds.
    #[serde(default)]
    pub useful_us: u64,
}

impl Second {
    /// Adds the same second of another run.
    pub fn add(&mut self, other: &Self) {
        self.generated += other.generated;
        self.completed += other.completed;
        self.timed_out += other.timed_out;
        self.dropped += other.dropped;
        self.terminated += other.terminated;
        self.failed += other.failed;
        self.orders += other.orders;
        self.useful_us += other.useful_us;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn between_two_points_a_distribution_is_read_along_the_logarithm() {
        let told = Distribution(vec![(10.0, 0.0), (100.0, 0.4), (1000.0, 1.0)]);
        for (ms, share) in [(1.0, 0.0), (10.0, 0.0), (100.0, 0.4), (5000.0, 1.0)] {
            assert_eq!(told.within(ms), Some(share), "{ms} ms");
        }
        assert!((told.within(31.623).unwrap() - 0.2).abs() < 1e-4);
        assert_eq!(told.quantile_ms(0.5), Some(1000.0));
        assert_eq!(Distribution::default().within(1.0), None);
    }

    #[test]
    fn a_result_of_before_distributions_is_still_read() {
        let old = r#"{ "scenario": "s", "seeds": [1], "cells": [{ "policy": "p", "rho": 1.4,
            "closes": "hidden", "generated": 2, "completed": 1, "timed_out": 1, "dropped": 0,
            "not_generated": 0, "useful_work": 0.5, "wasted_work": null, "revenue_share": 0.5,
            "orders": 1, "orders_planned": 2, "orders_possible": 1.4, "classes": [] }] }"#;
        let result: RunResult = serde_json::from_str(old).unwrap();
        assert_eq!(result.cells[0].closes, Closes::Hidden);
        assert!(serde_json::from_str::<RunResult>(&old.replace("hidden", "open")).is_err());
    }
}
