//! The concurrency policy `gradient2`, by the ratio of long-term to short-term latency.
//!
//! Source: Netflix concurrency-limits, `Gradient2Limit`: g = clamp(1.5·long/short, ½, 1) and L ←
//! 0.8·L + 0.2·(g·L + 4). L is the limit, `short` the latency of the last round, and `long` an
//! exponential average over 600 rounds, which starts as a plain mean of ten. When `long` is more
//! than twice `short` it is lowered by a twentieth, so that a time of overload is forgotten. The
//! limit stays the same while fewer than half of the slots are in use.
//!
//! The 4 is the queue that the limit tolerates, in requests. The 1.5 is the rise of latency that it
//! tolerates. With both, the limit rises under a modest overload that lasts, until `long` itself
//! reflects the overload.

use bywash_units::Time;

use super::LimitSettings;
use super::rounds::{Round, Rounds};
use super::{Ended, Limit, Load, Range};

const TOLERANCE: f64 = 1.5;
const QUEUE: f64 = 4.0;
const SMOOTHING: f64 = 0.2;
const LONG_WINDOW: f64 = 600.0;
const WARM_UP: u32 = 10;

/// The concurrency policy `gradient2`. See the module documentation.
#[derive(Debug)]
pub struct Gradient2 {
    range: Range,
    limit: f64,
    rounds: Rounds,
    /// The long-term mean latency, in seconds.
    long: f64,
    seen: u32,
}

impl Gradient2 {
    /// Creates the limit from `settings`, the values of its parameters.
    pub fn new(settings: &LimitSettings) -> Self {
        let range = Range::new(settings);
        Self {
            range,
            limit: range.initial(settings),
            rounds: Rounds::new(settings.span("window")),
            long: 0.0,
            seen: 0,
        }
    }

    fn learn(&mut self, round: Round) {
        let short = round.latency;
        self.seen = (self.seen + 1).min(WARM_UP + 1);
        let weight = if self.seen <= WARM_UP {
            1.0 / f64::from(self.seen)
        } else {
            2.0 / (LONG_WINDOW + 1.0)
        };
        self.long += weight * (short - self.long);
        if self.long / short > 2.0 {
            self.long *= 0.95;
        }
        if f64::from(round.running) * 2.0 < self.limit {
            return;
        }
        let gradient = (TOLERANCE * self.long / short).clamp(0.5, 1.0);
        let wanted = self.limit * gradient + QUEUE;
        self.limit = self.range.clamp(self.limit + SMOOTHING * (wanted - self.limit));
    }
}

impl Limit for Gradient2 {
    fn slots(&self) -> u32 {
        self.limit as u32
    }

    fn ended(&mut self, now: Time, load: Load, ended: Ended) {
        if let Some(round) = self.rounds.ended(now, load, ended) {
            self.learn(round);
        }
    }
}
