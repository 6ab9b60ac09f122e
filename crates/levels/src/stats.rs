//! Statistics of a pool.

use std::time::Duration;

use bywash_engine::levels::{LevelId, Occupant, Verdict};
use bywash_units::TimeSpan;
use hdrhistogram::Histogram;

/// A snapshot of the statistics of a pool.
#[derive(Clone, Debug, PartialEq)]
pub struct Stats {
    /// The statistics of each level, in the order in which the builder named the levels.
    pub levels: Vec<LevelStats>,
    /// The state of the goal, if the pool has one.
    pub goal: Option<GoalStats>,
}

/// The statistics of a level. Counts and times cover all requests since the pool was built.
#[derive(Clone, Debug, PartialEq)]
pub struct LevelStats {
    /// The name of the level.
    pub name: String,
    /// The total number of requests that ended, with success or not.
    pub answered: u64,
    /// The total number of requests that panicked or [failed](crate::Request::fail). They are also
    /// in `answered`.
    pub panicked: u64,
    /// The total number of requests that were refused because the queue of the level was full.
    pub refused: u64,
    /// The total number of requests that left the queue before they began.
    pub left: u64,
    /// The mean response time, from arrival to end, of the requests in `answered`.
    pub mean: Duration,
    /// The standard deviation of the response time, divided by the mean response time.
    pub deviation: f64,
    /// The median response time of the requests in `answered`.
    pub median: Duration,
    /// The 95th percentile of the response time of the requests in `answered`.
    pub p95: Duration,
    /// The 99th percentile of the response time of the requests in `answered`.
    pub p99: Duration,
    /// The mean time from arrival to the first slot, of the requests in `answered`.
    pub waited: Duration,
    /// The number of requests that wait for their first slot now.
    pub waiting: usize,
    /// The number of requests that have begun and not ended.
    pub running: usize,
    /// The number of slots that the running requests of the level hold now.
    pub threads: u32,
    /// The level's share, 0 to 1, of the slot time that all levels used in the last seconds.
    pub share: f64,
}

/// The state of the goal of a pool.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GoalStats {
    /// Whether the goal is reached.
    pub verdict: Verdict,
    /// The measured ratio of response times, or the measured fraction of requests answered within
    /// the time, over the last seconds. `None` while there were too few requests.
    pub measured: Option<f64>,
    /// The controller's output. For a ratio it is the weight of the faster level's age. For a
    /// percentile it is the number of seconds for which the level's requests may be made to wait.
    pub effort: f64,
}

/// The counts of the requests of one level since the pool was built.
#[derive(Clone, Debug)]
struct Counts {
    refused: u64,
    left: u64,
    panicked: u64,
    /// The response times of all ended requests, in microseconds.
    response: Histogram<u64>,
    /// The sum of the response times of all ended requests.
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
            // The histogram covers 1 µs to 1 hour, with two significant digits.
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

    /// Returns the statistics of a level without its present load, which the caller adds.
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
