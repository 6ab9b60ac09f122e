//! Shows the progress of a long run. On a terminal it rewrites one line, and elsewhere it prints a
//! few lines.

use std::io::{IsTerminal, stderr};
use std::sync::atomic::{AtomicUsize, Ordering};

/// A count of steps towards a total.
#[derive(Debug)]
pub struct Progress {
    what: String,
    total: usize,
    done: AtomicUsize,
    /// Number of steps between two printed lines.
    stride: usize,
}

impl Progress {
    /// Creates a count at zero. `what` describes the steps, and `total` is their expected number.
    pub fn new(what: &str, total: usize) -> Self {
        let stride = if stderr().is_terminal() { 200 } else { 4 };
        let stride = (total / stride).max(1);
        Self { what: what.into(), total, done: AtomicUsize::new(0), stride }
    }

    /// Counts one more step, and prints the progress after every `stride` steps.
    pub fn step(&self) {
        let done = self.done.fetch_add(1, Ordering::Relaxed) + 1;
        if done == self.total || done.is_multiple_of(self.stride) {
            let (what, total) = (&self.what, self.total);
            let end = if stderr().is_terminal() && done < total { "\r" } else { "\n" };
            eprint!("{what}: {done} of {total}{end}");
        }
    }
}
