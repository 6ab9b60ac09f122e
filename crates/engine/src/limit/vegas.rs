//! The concurrency policy `vegas`, which estimates from latency how many requests wait inside the
//! application.
//!
//! Source: Netflix concurrency-limits, `VegasLimit` (after Brakmo and Peterson's TCP Vegas). The
//! minimum latency seen is taken for the latency without a queue. So q = ⌈L(1 − minimum/latency)⌉
//! requests wait inside, L being the limit. With α = 3·log₁₀ L and β = 6·log₁₀ L:
//! - if q ≤ log₁₀ L, the limit rises by β;
//! - if q is below α, the limit rises by log₁₀ L;
//! - if q is above β, or after a drop, the limit falls by log₁₀ L.
//!
//! Without a drop the limit stays the same while fewer than half of the slots are in use. After
//! 22.5·L rounds the next latency becomes the minimum, however long the queue is at that time. That
//! is the known weakness of the method. A single very quick answer is another.
//!
//! This implementation differs in one point. The source draws the number of rounds between 15·L and
//! 30·L at random. The engine decides without randomness and takes the middle.

use bywash_units::Time;

use super::LimitSettings;
use super::rounds::{Round, Rounds};
use super::{Ended, Limit, Load, Range};

/// The number of rounds per slot after which the minimum latency is measured again.
const ROUNDS_PER_SLOT: f64 = 22.5;

/// The concurrency policy `vegas`. See the module documentation.
#[derive(Debug)]
pub struct Vegas {
    range: Range,
    limit: f64,
    rounds: Rounds,
    /// The minimum latency seen, in seconds; `None` until one is measured.
    least: Option<f64>,
    until_forgotten: f64,
}

impl Vegas {
    /// Creates the limit from `settings`, the values of its parameters.
    pub fn new(settings: &LimitSettings) -> Self {
        let range = Range::new(settings);
        let limit = range.initial(settings);
        Self {
            range,
            limit,
            rounds: Rounds::new(settings.span("window")),
            least: None,
            until_forgotten: limit * ROUNDS_PER_SLOT,
        }
    }

    fn learn(&mut self, round: Round) {
        self.until_forgotten -= 1.0;
        if self.until_forgotten <= 0.0 {
            self.until_forgotten = self.limit * ROUNDS_PER_SLOT;
            self.least = None;
        }
        match self.least {
            Some(least) if round.latency >= least => self.follow(least, round),
            _ => self.least = Some(round.latency),
        }
    }

    fn follow(&mut self, least: f64, round: Round) {
        if !round.dropped && f64::from(round.running) * 2.0 < self.limit {
            return;
        }
        let step = step(self.limit);
        // Only whole requests wait, so the length of the queue is rounded up.
        let queue = self.limit * (1.0 - least / round.latency);
        let queue = libm::ceil(queue);
        let (alpha, beta) = (3.0 * step, 6.0 * step);
        let change = if round.dropped || queue > beta {
            -step
        } else if queue <= step {
            beta
        } else if queue < alpha {
            step
        } else {
            0.0
        };
        self.limit = self.range.clamp(self.limit + change);
    }
}

/// Returns log₁₀ of the limit, rounded down to a whole number, but at least 1. The original program
/// has a table of these values.
pub(super) fn step(limit: f64) -> f64 {
    f64::from((limit as u32).max(1).ilog10().max(1))
}

impl Limit for Vegas {
    fn slots(&self) -> u32 {
        self.limit as u32
    }

    fn ended(&mut self, now: Time, load: Load, ended: Ended) {
        if let Some(round) = self.rounds.ended(now, load, ended) {
            self.learn(round);
        }
    }
}
