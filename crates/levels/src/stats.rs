//! What a pool has done.

use std::time::Duration;

use bywash_engine::levels::{LevelId, Occupant, Verdict};
use bywash_units::Span;
use hdrhistogram::Histogram;

/// A pool, at one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct Stats {
    /// Its levels, in the order in which they were named.
    pub levels: Vec<LevelStats>,
    /// Its goal, if it has one.
    pub goal: Option<GoalStats>,
}

/// A level: counts since the pool was made, and what it does now.
#[derive(Clone, Debug, PartialEq)]
pub struct LevelStats {
    /// Its name.
    pub name: String,
    /// Requests that came to their end.
    pub answered: u64,
    /// Of these, those that panicked or [failed](crate::Request::fail).
    pub panicked: u64,
    /// Requests that found the queue full.
    pub refused: u64,
    /// Requests that left before their turn came.
    pub left: u64,
    /// From arrival to end: mean, of those that were answered.
    pub mean: Duration,
    /// The same: standard deviation over mean.
    pub deviation: f64,
    /// The same: median.
    pub median: Duration,
    /// The same: 95th percentile.
    pub p95: Duration,
    /// The same: 99th percentile.
    pub p99: Duration,
    /// From arrival to the first slot: mean.
    pub waited: Duration,
    /// Requests that wait for their turn.
    pub waiting: usize,
    /// Requests that have begun.
    pub running: usize,
    /// Slots that they have.
    pub threads: u32,
    /// Share of the slot time used in the last seconds, 0 to 1.
    pub share: f64,
}

/// How far a goal is reached.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GoalStats {
    /// Whether it is.
    pub verdict: Verdict,
    /// The ratio that was measured, or the share that was answered within the time; of the last seconds.
    pub measured: Option<f64>,
    /// What is done about it: the weight of the faster level's age, or seconds that the level's requests are let wait.
    pub effort: f64,
}

/// Of one level.
#[derive(Clone, Debug)]
struct Counts {
    refused: u64,
    left: u64,
    panicked: u64,
    /// Microseconds.
    response: Histogram<u64>,
    /// Of all responses together.
    taken: Span,
    waited: Span,
}

#[derive(Clone, Debug)]
pub(crate) struct Tally(Vec<Counts>);

impl Tally {
    pub(crate) fn new(levels: usize) -> Self {
        let counts = || Counts {
            refused: 0,
            left: 0,
            panicked: 0,
            // One µs to an hour at two significant digits.
            response: Histogram::new_with_bounds(1, 3_600_000_000, 2)
                .expect("constant bounds, low < high, 2 digits"),
            taken: Span::ZERO,
            waited: Span::ZERO,
        };
        Self((0..levels).map(|_| counts()).collect())
    }

    pub(crate) fn refused(&mut self, level: LevelId) {
        self.0[level.0].refused += 1;
    }

    pub(crate) fn left(&mut self, level: LevelId) {
        self.0[level.0].left += 1;
    }

    pub(crate) fn ended(&mut self, ended: &Occupant, panicked: bool) {
        let counts = &mut self.0[ended.level.0];
        counts.panicked += u64::from(panicked);
        counts.taken += ended.response;
        counts.waited += ended.waited;
        counts.response.saturating_record(ended.response.as_micros().max(1));
    }

    /// A level as its counts say; what it does now is for the caller to add.
    pub(crate) fn level(&self, level: LevelId, name: &str) -> LevelStats {
        let counts = &self.0[level.0];
        let answered = counts.response.len();
        let quantile = |share| Duration::from_micros(counts.response.value_at_quantile(share));
        let (mean, deviation) = (counts.response.mean(), counts.response.stdev());
        LevelStats {
            name: name.into(),
            answered,
            panicked: counts.panicked,
            refused: counts.refused,
            left: counts.left,
            mean: (counts.taken / answered.max(1)).to_std(),
            deviation: if answered > 0 { deviation / mean } else { 0.0 },
            median: quantile(0.5),
            p95: quantile(0.95),
            p99: quantile(0.99),
            waited: (counts.waited / answered.max(1)).to_std(),
            waiting: 0,
            running: 0,
            threads: 0,
            share: 0.0,
        }
    }
}
