//! The results of a run, in the same form from the simulator and from a live run.
//!
//! The counts are the columns of paper 1's tables; work and revenue are additions. The JSON names
//! are stable, because other programs read the output of `--json`, and `lab compare` reads earlier
//! results.

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
    /// The reason why the figures must not be used; `None` if they may. The usual reason is that
    /// the load generator was behind schedule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub invalid: Option<String>,
    /// The result rows, one for each combination of policy, offered load and visibility of closes.
    pub cells: Vec<ResultRow>,
}

/// The results of one policy under one load, summed over the seeds.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ResultRow {
    /// The label of the policy.
    pub policy: String,
    /// The offered load ρ, as a multiple of the servers' capacity. If the load changes during the
    /// run, this is the level that it changes to.
    pub rho: f64,
    /// Whether the server side could see a client leave.
    pub closes: Closes,
    /// The time during which visitors arrived with each seed, in seconds.
    #[serde(default)]
    pub duration_s: f64,
    /// The total number of requests made, retries included.
    pub generated: u64,
    /// The number of requests answered while the client still waited.
    pub completed: u64,
    /// The number of requests that the client gave up because it lost patience.
    pub timed_out: u64,
    /// The number of requests that the server side refused.
    pub dropped: u64,
    /// The number of requests that the server side stopped while they ran.
    #[serde(default)]
    pub terminated: u64,
    /// The number of requests answered with an error or not at all, and neither refused nor
    /// stopped.
    #[serde(default)]
    pub failed: u64,
    /// The number of planned requests that were never made because their session was abandoned.
    pub not_generated: u64,
    /// The number of requests that visitors meant to make, without the retries that `generated`
    /// includes.
    #[serde(default)]
    pub requests_planned: u64,
    /// The service time of requests answered in time, as a share of the possible work. While ρ ≥ 1,
    /// the possible work is the servers' capacity. While ρ < 1, it is the offered work. After a
    /// crowd the share can exceed 1, because in the calm that follows the servers still serve
    /// requests of the crowd's visitors.
    pub useful_work: f64,
    /// The standard error of `useful_work`, estimated from the seeds; `None` for a single seed.
    #[serde(default)]
    pub useful_error: Option<f64>,
    /// The service time of requests that were not answered in time, as a share of the possible work
    /// ([`Self::useful_work`]). `None` if a live target does not report its total service time.
    pub wasted_work: Option<f64>,
    /// The number of confirmed orders as a share of `orders_possible`. After a crowd it can exceed
    /// 1, like `useful_work`. If ρ ≥ 1 until arrivals end, only orders confirmed before that end
    /// count. A run should therefore be much longer than a session.
    pub revenue_share: f64,
    /// The standard error of `revenue_share`, estimated from the seeds; `None` for a single seed.
    #[serde(default)]
    pub revenue_error: Option<f64>,
    /// The number of confirmed orders that count for `revenue_share`.
    pub orders: u64,
    /// The number of orders that visitors meant to make.
    pub orders_planned: u64,
    /// The number of orders that the servers' capacity allows. Each planned order adds min(1, 1/ρ),
    /// where ρ is the offered load at the start of the order's session.
    pub orders_possible: f64,
    /// The recovery of useful work after a pulse of load; `None` if the load has no pulse.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recovery: Option<Recovery>,
    /// The results of adversaries, which no other figure includes; `None` without adversaries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hostile: Option<Hostile>,
    /// The decisions about observed requests; `None` unless the policy is in mode `observe`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed: Option<Decisions>,
    /// The distributions of the response times of completed requests.
    #[serde(default)]
    pub response: TierResponses,
    /// The results per class, in the order of the scenario.
    pub classes: Vec<ClassRow>,
    /// The figures of each seed, in the order of the seeds. The standard errors are estimated from
    /// these figures.
    #[serde(default)]
    pub per_seed: Vec<SeedFigures>,
    /// The number of sessions that ended within the run.
    #[serde(default)]
    pub sessions: u64,
    /// The mean duration of the sessions that ended, from the first request to the last answer, in
    /// seconds; 0 if none ended. Sessions that would have ended later are not included [paper 5.8].
    #[serde(default)]
    pub session_s: f64,
    /// The counts of each second, summed over the seeds. The list is empty if the run lasts more
    /// than an hour.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub timeline: Vec<Second>,
}

impl ResultRow {
    /// Returns the number of requests made plus the number of planned requests that were never
    /// made. This sum is the base of the percentages in paper 1.
    pub fn base(&self) -> u64 {
        self.generated + self.not_generated
    }
}

/// The numbers of observed requests, by the decision that stood at the end of each. None of the
/// decisions was carried out. The names are those of the gateway's log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decisions {
    /// The number of requests that had got a slot.
    pub run: u64,
    /// The number of requests that would have been refused.
    pub shed: u64,
    /// The number of requests that would have been stopped while they ran.
    pub stop: u64,
    /// The number of requests that would still have waited for a slot.
    pub wait: u64,
}

impl Decisions {
    /// Adds the numbers of another run.
    pub fn add(&mut self, other: &Self) {
        self.run += other.run;
        self.shed += other.shed;
        self.stop += other.stop;
        self.wait += other.wait;
    }
}

/// The results of one class of a result row.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ClassRow {
    /// The name of the class.
    pub class: String,
    /// The number of requests of the class made, retries included.
    pub generated: u64,
    /// The number of requests of the class answered while the client still waited.
    pub completed: u64,
    /// The number of requests of the class that the client gave up because it lost patience.
    pub timed_out: u64,
    /// The number of requests of the class that the server side refused.
    pub dropped: u64,
    /// The number of requests of the class that the server side stopped while they ran.
    #[serde(default)]
    pub terminated: u64,
    /// The number of requests of the class answered with an error or not at all, and neither
    /// refused nor stopped.
    #[serde(default)]
    pub failed: u64,
    /// The mean response time of completed requests, in milliseconds.
    #[serde(default)]
    pub mean_ms: f64,
    /// The standard deviation of the response times of completed requests, divided by their mean.
    #[serde(default)]
    pub deviation: f64,
    /// The median response time of completed requests, in milliseconds.
    pub p50_ms: f64,
    /// The 99th percentile of the response times of completed requests, in milliseconds.
    pub p99_ms: f64,
    /// The longest response time of a completed request, in milliseconds.
    #[serde(default)]
    pub longest_ms: f64,
    /// The distribution of the response times of completed requests.
    #[serde(default, skip_serializing_if = "EmpiricalCdf::is_empty")]
    pub response: EmpiricalCdf,
}

/// The distributions of the response times of completed requests, of all classes and by tier.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TierResponses {
    /// The response times of requests of all classes.
    #[serde(default, skip_serializing_if = "EmpiricalCdf::is_empty")]
    pub all: EmpiricalCdf,
    /// The response times of requests of tier `browsing`.
    #[serde(default, skip_serializing_if = "EmpiricalCdf::is_empty")]
    pub browsing: EmpiricalCdf,
    /// The response times of requests of tier `transaction`.
    #[serde(default, skip_serializing_if = "EmpiricalCdf::is_empty")]
    pub transactions: EmpiricalCdf,
}

/// A cumulative distribution: points of a response time in milliseconds, and the share of completed
/// requests that were answered within it. Both values rise from point to point. There are at most
/// 120 points, the last with share 1, and none if nothing was completed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct EmpiricalCdf(pub Vec<(f64, f64)>);

impl EmpiricalCdf {
    /// Returns whether the distribution has no points, that is, no request was completed.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the share of completed requests that were answered within `ms` milliseconds. Between
    /// two points it interpolates linearly over the logarithm of time. Returns `None` if nothing
    /// was completed.
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

    /// Returns the shortest time in milliseconds within which at least a `share` of the completed
    /// requests was answered, among the points of the distribution. Returns `None` if nothing was
    /// completed.
    pub fn quantile_ms(&self, share: f64) -> Option<f64> {
        self.0.iter().find(|(_, within)| *within >= share).map(|(ms, _)| *ms)
    }
}

/// The recovery of useful work after the end of a pulse of load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recovery {
    /// The time in seconds from the end of the pulse until useful work has recovered. Useful work
    /// has recovered when its mean over the next ten seconds is at least 90 % of its mean before
    /// the pulse. `None` if it did not recover.
    pub seconds: Option<u64>,
}

/// The figures of one seed of a result row, as shares from 0 to 1 unless stated otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SeedFigures {
    /// The share of [`ResultRow::base`] that was completed, as in paper 1's table.
    pub completed: f64,
    /// The share of [`ResultRow::base`] that timed out.
    pub timed_out: f64,
    /// The share of [`ResultRow::base`] that was dropped.
    pub dropped: f64,
    /// The service time of requests answered in time, as a share of the possible work
    /// ([`ResultRow::useful_work`]).
    pub useful_work: f64,
    /// The number of confirmed orders, as a share of the possible orders
    /// ([`ResultRow::revenue_share`]).
    pub revenue_share: f64,
    /// The number of requests that visitors meant to make, without retries. Two runs with equal
    /// numbers of planned requests and planned orders had the same visitors.
    pub requests_planned: u64,
    /// The number of orders that visitors meant to make.
    pub orders_planned: u64,
}

/// The counts of events within one second of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Second {
    /// The number of requests made.
    pub generated: u64,
    /// The number of requests answered while the client waited.
    pub completed: u64,
    /// The number of requests that clients gave up.
    pub timed_out: u64,
    /// The number of requests refused.
    pub dropped: u64,
    /// The number of requests stopped while they ran.
    #[serde(default)]
    pub terminated: u64,
    /// The number of requests that failed.
    #[serde(default)]
    pub failed: u64,
    /// The number of orders confirmed.
    pub orders: u64,
    /// The total service time of the requests that were answered in time, in microseconds.
    #[serde(default)]
    pub useful_us: u64,
}

impl Second {
    /// Adds the counts that another run has for the same second.
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
