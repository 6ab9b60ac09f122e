//! Sums over a window, and its response times.

use bywash_api::OutcomeCounts;

/// The halvings in the search for a response time: they find one of up to a second to within 4 µs.
const HALVINGS: usize = 18;

/// Sums over a window.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Sums {
    /// The length of the window.
    pub(super) seconds: f64,
    pub(super) outcomes: OutcomeCounts,
    pub(super) useful_ms: f64,
    pub(super) wasted_ms: f64,
    /// The median in milliseconds, approximately.
    pub(super) p50: Option<f64>,
    pub(super) p99: Option<f64>,
}

/// The response times of a row, with its number of answers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Times {
    pub(super) answers: f64,
    pub(super) p50: f64,
    pub(super) p99: f64,
}

/// Adds the outcomes of a row to a sum.
pub(super) const fn add(sum: &mut OutcomeCounts, more: &OutcomeCounts) {
    sum.served += more.served;
    sum.late += more.late;
    sum.shed += more.shed;
    sum.throttled += more.throttled;
    sum.expired += more.expired;
    sum.terminated += more.terminated;
    sum.orphaned += more.orphaned;
    sum.upstream_error += more.upstream_error;
}

impl Sums {
    /// Returns the number of requests that ended.
    pub(super) const fn ended(&self) -> u64 {
        let OutcomeCounts {
            served,
            late,
            shed,
            throttled,
            expired,
            terminated,
            orphaned,
            upstream_error,
        } = self.outcomes;
        served + late + shed + throttled + expired + terminated + orphaned + upstream_error
    }

    /// Returns the number of requests that were refused, so that no work was spent on them.
    pub(super) const fn refused(&self) -> u64 {
        self.outcomes.shed + self.outcomes.throttled + self.outcomes.expired
    }

    /// Returns `count` as a fraction of all requests that ended.
    pub(super) fn share(&self, count: u64) -> Option<f64> {
        (self.ended() > 0).then(|| count as f64 / self.ended() as f64)
    }

    /// Returns `count` per second.
    pub(super) fn per_second(&self, count: u64) -> f64 {
        if self.seconds > 0.0 { count as f64 / self.seconds } else { 0.0 }
    }

    /// Returns the fraction of all work that was useful.
    pub(super) fn useful(&self) -> Option<f64> {
        let all = self.useful_ms + self.wasted_ms;
        (all > 0.0).then(|| self.useful_ms / all)
    }
}

/// Estimates the response time that a fraction `part` of the answers did not exceed. A row has only
/// its p50 and p99: its answers are assumed to be spread evenly from 0 to p50 and from p50 to p99,
/// with none above p99. The result is approximate, and at most the largest p99 of a row.
pub(super) fn response_time(rows: &[Times], part: f64) -> Option<f64> {
    let all: f64 = rows.iter().map(|row| row.answers).sum();
    let longest = rows.iter().map(|row| row.p99).fold(0.0, f64::max);
    let within = |ms: f64| rows.iter().map(|row| row.answers * row.within(ms)).sum::<f64>() / all;
    let (mut below, mut above) = (0.0, longest);
    for _ in 0..HALVINGS {
        let middle = f64::midpoint(below, above);
        if within(middle) >= part {
            above = middle;
        } else {
            below = middle;
        }
    }
    (all > 0.0).then_some(above)
}

impl Times {
    /// Returns the fraction of the answers that took at most `ms`.
    fn within(&self, ms: f64) -> f64 {
        if ms >= self.p99 {
            1.0
        } else if ms < self.p50 {
            0.5 * ms / self.p50
        } else {
            0.5 + 0.49 * (ms - self.p50) / (self.p99 - self.p50)
        }
    }
}
