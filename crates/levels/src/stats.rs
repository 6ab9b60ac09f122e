//! Statistics of a pool.

use std::time::Duration;

use bywash_engine::levels::{LevelId, Occupant, Verdict};
use bywash_units::TimeSpan;
use hdrhistogram::Histogram;

/// A snapshot of a pool's statistics.
#[derive(Clone, Debug, PartialEq)]
pub struct Stats {
    /// The levels, in the order in which the builder named them.
    pub levels: Vec<LevelStats>,
    /// The goal, if the pool has one.
    pub goal: Option<GoalStats>,
}

/// The counts of a level since the pool was built, and its present load.
#[derive(Clone, Debug, PartialEq)]
pub struct LevelStats {
    /// The name of the level.
    pub name: String,
    /// Requests that ended.
    pub answered: u64,
    /// Requests that ended with a panic or [failed](crate::Request::fail). They count as answered
    /// too.
    pub panicked: u64,
    /// Requests that found the queue full.
    pub refused: u64,
    /// Requests that left before their turn came.
    pub left: u64,
    /// The mean response time of answered requests, from arrival to end.
    pub mean: Duration,
    /// The standard deviation of the response time, divided by its mean.
    pub deviation: f64,
    /// The median response time.
    pub median: Duration,
    /// The 95th percentile of the response time.
    pub p95: Duration,
    /// The 99th percentile of the response time.
    pub p99: Duration,
    /// The mean time from arrival to the first slot.
    pub waited: Duration,
    /// Requests that wait for their turn.
    pub waiting: usize,
    /// Requests that have begun.
    pub running: usize,
    /// Slots of the running requests.
    pub threads: u32,
    /// The level's fraction of the slot time that was used in the last seconds, from 0 to 1.
    pub share: f64,
}

/// The state of a pool's goal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GoalStats {
    /// Whether the goal is reached.
    pub verdict: Verdict,
    /// The ratio that was measured, or the fraction of requests answered within the time. Covers
    /// the last seconds.
    pub measured: Option<f64>,
    /// The control output: the weight of the faster level's age, or the seconds that the level's
    /// requests are made to wait.
    pub effort: f64,
}

/// The counts of one level.
#[derive(Clone, Debug)]
struct Counts {
    refused: u64,
    left: u64,
    panicked: u64,
    /// Response times in microseconds.
    response: Histogram<u64>,
    /// The sum of all response times.
    taken: TimeSpan,
    waited: TimeSpan,
}

#[derive(Clone, Debug)]
pub(crate) struct Tally(Vec<Counts>);

impl Tally {
    pub(crate) fn new(levels: usize) -> Self {
        let counts = || Counts {
            refused: 0,
            left: 0,
            panicked: 0,
            // 1 µs to 1 hour at two significant digits.
            response: Histogram::new_with_bounds(1, 3_600_000_000, 2)
                .expect("constant bounds, low < high, 2 digits"),
            taken: TimeSpan::ZERO,
            waited: TimeSpan::ZERO,
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

    /// Returns the counts of a level. The caller adds its present load.
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
