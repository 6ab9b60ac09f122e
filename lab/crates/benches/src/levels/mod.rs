//! Levels: what a pool's threads cost beside rayon's, and whether it keeps its goals on the processors that there are.

mod spawn;
mod step;
mod workload;

pub use spawn::{Cost, costs};
pub use step::{Phase, Step, steps};
pub use workload::{ClientsResult, Execution, Workload, ratios};

use std::hint::black_box;
use std::time::{Duration, Instant};

/// Work for one processor, measured in rounds of arithmetic that no compiler leaves out.
#[derive(Clone, Copy, Debug)]
pub struct Burner {
    rounds_per_ms: f64,
}

impl Burner {
    /// Finds out how many rounds take a millisecond here, alone: the fastest of several, as others may take the
    /// processor meanwhile.
    pub fn calibrated() -> Self {
        const ROUNDS: u64 = 1_000_000;
        let once = || {
            let begun = Instant::now();
            burn(ROUNDS);
            begun.elapsed()
        };
        let fastest = (0..20).map(|_| once()).min().unwrap_or(Duration::from_millis(1));
        Self { rounds_per_ms: ROUNDS as f64 / (fastest.as_secs_f64() * 1e3) }
    }

    /// Works for so many milliseconds of a processor.
    pub fn work(self, milliseconds: f64) {
        burn((self.rounds_per_ms * milliseconds) as u64);
    }
}

fn burn(rounds: u64) {
    let mut sum = 1_u64;
    for i in 0..rounds {
        sum = black_box(sum.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(i));
    }
    black_box(sum);
}
