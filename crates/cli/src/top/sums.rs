//! What happened in a window, and its response times.

use bywash_api::OutcomeCounts;

/// Halvings of a response time that is looked for: a second within 4 µs.
const HALVINGS: usize = 18;

/// What happened in a window.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Sums {
    /// How long it was.
    pub(super) seconds: f64,
    pub(super) outcomes: OutcomeCounts,
    pub(super) useful_ms: f64,
    pub(super) wasted_ms: f64,
    /// Milliseconds, about.
    pub(super) p50: Option<f64>,
    pub(super) p99: Option<f64>,
}

/// Response times of a row, of so many answers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Times {
    pub(super) answers: f64,
    pub(super) p50: f64,
    pub(super) p99: f64,
}

/// One more row.
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
    /// Requests that ended.
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

    /// Those that were refused: nobody worked on them.
    pub(super) const fn refused(&self) -> u64 {
        self.outcomes.shed + self.outcomes.throttled + self.outcomes.expired
    }

    /// So many of them as a part of all that ended.
    pub(super) fn share(&self, count: u64) -> Option<f64> {
        (self.ended() > 0).then(|| count as f64 / self.ended() as f64)
    }

    /// So many of them a second.
    pub(super) fn per_second(&self, count: u64) -> f64 {
        if self.seconds > 0.0 { count as f64 / self.seconds } else { 0.0 }
    }

    /// Of all work, the part that was useful.
    pub(super) fn useful(&self) -> Option<f64> {
        let all = self.useful_ms + self.wasted_ms;
        (all > 0.0).then(|| self.useful_ms / all)
    }
}

/// What so large a part of the answers took at most. A row says its p50 and p99: between the two its answers are taken to lie evenly,
/// below p50 from nothing on, and none above p99. About, then, and above no row's p99.
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
    /// Part of the answers that took at most so long.
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
