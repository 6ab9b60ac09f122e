//! What a request does besides asking the engine: CPU time over memory of its own thread.
//!
//! Each step is a load that depends on the one before, from 128 KiB that do not fit into a
//! first-level cache: like the bytes, the parser and the kernel of a real request, it drives the
//! engine's lines out of there.

use std::hint;
use std::time::{Duration, Instant};

const LINES: usize = 2_048;

/// How many steps take how long on this machine.
#[derive(Clone, Copy, Debug)]
pub(super) struct Toil {
    steps: u32,
}

impl Toil {
    /// As many steps as take `time`.
    pub(super) fn lasting(time: Duration) -> Self {
        const TRIED: u32 = 100_000;
        let once = |_| {
            let mut place = Workplace::new();
            let start = Instant::now();
            place.toil(Self { steps: TRIED });
            start.elapsed()
        };
        let fastest = (0..20).map(once).fold(Duration::MAX, Duration::min);
        let steps = time.as_secs_f64() / fastest.as_secs_f64() * f64::from(TRIED);
        Self { steps: steps as u32 }
    }
}

#[repr(align(64))]
struct Line {
    next: u32,
}

/// A thread's own memory.
pub(super) struct Workplace {
    lines: Vec<Line>,
    at: u32,
}

impl Workplace {
    pub(super) fn new() -> Self {
        // x → 5x + 1 goes through all of a power of two before it comes back, and no prefetcher
        // foresees it.
        let next = |i: usize| Line { next: ((5 * i + 1) % LINES) as u32 };
        Self { lines: (0..LINES).map(next).collect(), at: 0 }
    }

    pub(super) fn toil(&mut self, toil: Toil) {
        for _ in 0..toil.steps {
            self.at = hint::black_box(self.lines[self.at as usize].next);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn toil_touches_every_line() {
        let mut place = Workplace::new();
        for step in 1..=LINES {
            place.toil(Toil { steps: 1 });
            assert_eq!(place.at == 0, step == LINES, "after {step} steps");
        }
    }
}
