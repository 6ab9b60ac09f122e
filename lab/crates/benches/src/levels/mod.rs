//! Measures the cost of bywash's thread pool with levels of service, compared with rayon's. Also
//! measures whether the pool meets its goals on the available processors.

mod spawn;
mod step;
mod workload;

pub use spawn::{Cost, costs};
pub use step::{Phase, Step, steps};
pub use workload::{ClientsResult, Execution, Workload, ratios};

use std::hint::black_box;
use std::time::{Duration, Instant};

/// A generator of CPU load. It uses a chosen amount of CPU time, in rounds of arithmetic that the
/// compiler cannot remove.
#[derive(Clone, Copy, Debug)]
pub struct Burner {
    rounds_per_ms: f64,
}

impl Burner {
    /// Measures how many rounds take a millisecond on an idle processor, and returns a burner with
    /// that speed. The fastest of several measurements counts, because other programs may use the
    /// processor during a measurement.
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

    /// Uses `milliseconds` milliseconds of CPU time on the calling thread.
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
