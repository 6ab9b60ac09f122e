//! The results of a run, in the same form from the simulator and from a live run.
//!
//! Counts are the columns of paper 1's tables; work and revenue are additions. The JSON names are
//! stable, because others read the output of `--json`, and `lab compare` reads earlier results.

use serde::{Deserialize, Serialize};

use crate::adversary::Hostile;
use crate::client::Closes;

/// All result rows of one scenario.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RunResult {
    /// The name of the scenario.
    pub scenario: String,
    /// The seeds that every result row was run with.
    pub seeds: Vec<u64>,
    /// The reason why the figures must not be used: the load generator fell behind its own clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub invalid: Option<String>,
    /// One entry for each policy, level of load and visibility of closes.
    pub cells: Vec<ResultRow>,
}

/// The results of one policy under one load, summed over the seeds.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ResultRow {
    /// The label of the policy.
    pub policy: String,
    /// Offered load: the run's level. For a load that changes, the level that it changes to.
    pub rho: f64,
    /// Whether the server side could see a client leave.
    pub closes: Closes,
    /// How long visitors arrived with each seed, in seconds.
    #[serde(default)]
    pub duration_s: f64,
    /// Requests made, retries included.
    pub generated: u64,
    /// Requests answered while the client still waited.
    pub completed: u64,
    /// Requests given up by the client.
    pub timed_out: u64,
    /// Requests refused.
    pub dropped: u64,
    /// Requests stopped while they ran.
    #[serde(default)]
    pub terminated: u64,
    /// Requests answered with an error or not at all, and neither refused nor stopped.
    #[serde(default)]
    pub failed: u64,
    /// Requests that were never made because their session was abandoned.
    pub not_generated: u64,
    /// Requests that visitors meant to make, without the retries that `generated` includes.
    #[serde(default)]
    pub requests_planned: u64,
    /// Service time of requests answered in time, as a share of the steadily possible work: of
    /// capacity while ρ ≥ 1, of the offered work while ρ < 1. After a crowd it can exceed 1,
    /// because remaining requests of the crowd's visitors are served in the calm that follows.
    pub useful_work: f64,
    /// The standard error of `useful_work` over the seeds; `None` for one seed.
    #[serde(default)]
    pub useful_error: Option<f64>,
    /// Service time of all other requests, as a share of the same. `None` if a live target does not
    /// report how long it worked.
    pub wasted_work: Option<f64>,
    /// Confirmed orders as a share of min(1, 1/ρ) of the orders that visitors meant to make. After
    /// a crowd it can exceed 1, like `useful_work`. If ρ ≥ 1 to the end, only orders confirmed
    /// before arrivals end count, so a run should be much longer than a session.
    pub revenue_share: f64,
    /// The standard error of `revenue_share` over the seeds; `None` for one seed.
    #[serde(default)]
    pub revenue_error: Option<f64>,
    /// Confirmed orders that count for `revenue_share`.
    pub orders: u64,
    /// Orders that visitors meant to make.
    pub orders_planned: u64,
    /// The sum of min(1, 1/ρ) of the orders that visitors meant to make.
    pub orders_possible: f64,
    /// The recovery of useful work after a pulse; `None` without a pulse.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recovery: Option<Recovery>,
    /// The results of adversaries, which no other figure includes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hostile: Option<Hostile>,
    /// Response times of completed requests.
    #[serde(default)]
    pub response: TierResponses,
    /// The results per class, in the order of the scenario.
    pub classes: Vec<ClassRow>,
    /// The figures of each seed, in the order of the seeds. The standard errors are computed from
    /// them.
    #[serde(default)]
    pub per_seed: Vec<SeedFigures>,
    /// Sessions that ended within the run.
    #[serde(default)]
    pub sessions: u64,
    /// The mean duration of these sessions from the first request to the last answer, in seconds; 0
    /// if none ended. Sessions that would have ended later are not included [paper 5.8].
    #[serde(default)]
    pub session_s: f64,
    /// The counts of each second, summed over the seeds, for a run of at most an hour.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub timeline: Vec<Second>,
}

impl ResultRow {
    /// Returns the requests made and those never made: the base of the percentages in paper 1.
    pub fn base(&self) -> u64 {
        self.generated + self.not_generated
    }
}

/// The results of one class of a result row.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ClassRow {
    /// The name of the class.
    pub class: String,
    /// See [`ResultRow::generated`].
    pub generated: u64,
    /// See [`ResultRow::completed`].
    pub completed: u64,
    /// See [`ResultRow::timed_out`].
    pub timed_out: u64,
    /// See [`ResultRow::dropped`].
    pub dropped: u64,
    /// See [`ResultRow::terminated`].
    #[serde(default)]
    pub terminated: u64,
    /// See [`ResultRow::failed`].
    #[serde(default)]
    pub failed: u64,
    /// The mean response time of completed requests, in milliseconds.
    #[serde(default)]
    pub mean_ms: f64,
    /// The coefficient of variation of response times.
    #[serde(default)]
    pub deviation: f64,
    /// The median response time, in milliseconds.
    pub p50_ms: f64,
    /// The 99th percentile of response times, in milliseconds.
    pub p99_ms: f64,
    /// The longest response time, in milliseconds.
    #[serde(default)]
    pub longest_ms: f64,
    /// The distribution of response times.
    #[serde(default, skip_serializing_if = "EmpiricalCdf::is_empty")]
    pub response: EmpiricalCdf,
}

/// Response times of completed requests, of all together and by tier.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TierResponses {
    /// Response times of all classes.
    #[serde(default, skip_serializing_if = "EmpiricalCdf::is_empty")]
    pub all: EmpiricalCdf,
    /// Response times of browsing.
    #[serde(default, skip_serializing_if = "EmpiricalCdf::is_empty")]
    pub browsing: EmpiricalCdf,
    /// Response times of transactions.
    #[serde(default, skip_serializing_if = "EmpiricalCdf::is_empty")]
    pub transactions: EmpiricalCdf,
}

/// A cumulative distribution: times in milliseconds, and the share of completed requests that were
/// answered within each. Both rise. It has at most 120 points, the last with share 1, and none if
/// nothing was completed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct EmpiricalCdf(pub Vec<(f64, f64)>);

impl EmpiricalCdf {
    /// Returns whether nothing was completed.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the share answered within `ms` milliseconds. Between two points it interpolates
    /// linearly over the logarithm of time. Returns `None` if nothing was completed.
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

    /// Returns the time in milliseconds within which a `share` of all was answered, that is the
    /// first point that reaches it.
    pub fn quantile_ms(&self, share: f64) -> Option<f64> {
        self.0.iter().find(|(_, within)| *within >= share).map(|(ms, _)| *ms)
    }
}

/// The recovery after the end of a pulse.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recovery {
    /// Seconds from the end of the pulse to the first second after which useful work averaged, for
    /// ten seconds, at least 90 % of its value before the pulse; `None` if that did not happen.
    pub seconds: Option<u64>,
}

/// The figures of one seed of a result row, as shares.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SeedFigures {
    /// The share of completed requests in [`ResultRow::base`], as in paper 1's table.
    pub completed: f64,
    /// The share of timed-out requests.
    pub timed_out: f64,
    /// The share of dropped requests.
    pub dropped: f64,
    /// See [`ResultRow::useful_work`].
    pub useful_work: f64,
    /// See [`ResultRow::revenue_share`].
    pub revenue_share: f64,
    /// See [`ResultRow::requests_planned`]. This and the next show whether two runs had the same
    /// visitors.
    pub requests_planned: u64,
    /// See [`ResultRow::orders_planned`].
    pub orders_planned: u64,
}

/// The events within one second of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Second {
    /// Requests made.
    pub generated: u64,
    /// Requests answered in time.
    pub completed: u64,
    /// Requests given up.
    pub timed_out: u64,
    /// Requests refused.
    pub dropped: u64,
    /// Requests stopped.
    #[serde(default)]
    pub terminated: u64,
    /// Requests failed.
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
        let told = EmpiricalCdf(vec![(10.0, 0.0), (100.0, 0.4), (1000.0, 1.0)]);
        for (ms, share) in [(1.0, 0.0), (10.0, 0.0), (100.0, 0.4), (5000.0, 1.0)] {
            assert_eq!(told.within(ms), Some(share), "{ms} ms");
        }
        assert!((told.within(31.623).unwrap() - 0.2).abs() < 1e-4);
        assert_eq!(told.quantile_ms(0.5), Some(1000.0));
        assert_eq!(EmpiricalCdf::default().within(1.0), None);
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
