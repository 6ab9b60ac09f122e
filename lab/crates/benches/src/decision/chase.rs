//! Measures, for comparison, the cost of a memory load whose address depends on the previous load.

use super::{BATCH, Cost, Stopwatch};
use bywash_harness::splitmix64::SplitMix64;
use std::hint;

/// One cache line, which contains the index of the next line to load.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Line {
    next: u32,
}

/// A cycle of pointers through all lines in random order.
#[derive(Debug)]
struct PointerChase {
    lines: Vec<Line>,
    at: u32,
}

impl PointerChase {
    /// Creates one cycle through all lines (Sattolo's shuffle).
    fn new(lines: u32, rng: &mut SplitMix64) -> Self {
        let mut order: Vec<u32> = (0..lines).collect();
        for i in (1..lines as usize).rev() {
            order.swap(i, rng.below(i as u64) as usize);
        }
        let lines = order.into_iter().map(|next| Line { next }).collect();
        Self { lines, at: 0 }
    }

    fn run_batch(&mut self) {
        for _ in 0..BATCH {
            self.at = hint::black_box(self.lines[self.at as usize].next);
        }
    }
}

/// Measures the time of one load from an array of `lines` cache lines, whose address depends on the
/// previous load.
pub fn load(watch: &Stopwatch, lines: u32) -> Cost {
    let mut chase = PointerChase::new(lines, &mut SplitMix64::new(1));
    watch.measure(&mut chase, |_| (), |chase, ()| chase.run_batch(), |_, ()| ())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chase_comes_to_every_line_before_it_comes_back() {
        let mut chase = PointerChase::new(1_000, &mut SplitMix64::new(7));
        for step in 1..=1_000 / BATCH {
            chase.run_batch();
            assert_eq!(chase.at == 0, step * BATCH == 1_000, "after {step} batches");
        }
    }
}
