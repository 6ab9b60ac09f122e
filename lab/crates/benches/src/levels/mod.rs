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

/// Numbers between 0 and 1, the same for the same seed.
#[derive(Clone, Debug)]
struct SplitMix64(u64);

impl SplitMix64 {
    fn next(&mut self) -> f64 {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// With this mean, exponential.
    fn exponential(&mut self, mean: f64) -> f64 {
        -mean * (1.0 - self.next()).ln()
    }
}
