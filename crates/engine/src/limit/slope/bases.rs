//! How long a request of each class takes when nobody waits inside the application.
//!
//! With these, latency is a ratio (1: nothing waits inside), and a mix of other classes is not
//! taken for congestion. The common scale of the bases and their ratios to each other are learned
//! apart: ratios from every window, the scale only where few requests run. If every window moved the
//! scale, congestion would become the base that it is measured by.

use alloc::vec;
use alloc::vec::Vec;

use crate::request::{ClassId, ClassSet};

/// Seconds for each class; zero while nothing is known of it.
#[derive(Debug)]
pub(super) struct Bases(Vec<f64>);

/// Answers of one class in a window.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct OfClass {
    pub(super) answers: u32,
    /// Seconds in all.
    pub(super) took: f64,
}

/// Bounds of a base: a nanosecond, and more than any request may take.
const LEAST: f64 = 1e-9;
const MOST: f64 = 1e7;
/// So many answers of a class weigh as much as what was known of it.
const TRUST: f64 = 200.0;

impl Bases {
    pub(super) fn unknown() -> Self {
        Self(vec![0.0; ClassSet::MOST])
    }

    /// Seconds; `None` while unknown.
    pub(super) fn of(&self, class: ClassId) -> Option<f64> {
        Some(self.0[class.index()]).filter(|base| *base > 0.0)
    }

    /// All requests take `factor` times as long as was thought; no more at once than a hundredfold.
    pub(super) fn scale(&mut self, factor: f64) {
        let factor = factor.clamp(0.01, 100.0);
        for base in self.0.iter_mut().filter(|base| **base > 0.0) {
            *base = (*base * factor).clamp(LEAST, MOST);
        }
    }

    /// Moves the ratios of the classes towards what a window has shown, in which requests took
    /// `inflation` times their base. What the bases of its requests sum to stays the same.
    pub(super) fn learn(&mut self, window: &[OfClass], inflation: f64) {
        let (mut before, mut after) = (0.0, 0.0);
        for (base, seen) in self.0.iter_mut().zip(window).filter(|(_, seen)| seen.answers > 0) {
            let answers = f64::from(seen.answers);
            let shown = (seen.took / answers / inflation).clamp(LEAST, MOST);
            if *base > 0.0 {
                before += answers * *base;
                *base += answers / (answers + TRUST) * (shown - *base);
                after += answers * *base;
            } else {
                *base = shown;
            }
        }
        if before > 0.0 && after > 0.0 {
            self.scale(before / after);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(answers: u32, mean: f64) -> OfClass {
        OfClass { answers, took: f64::from(answers) * mean }
    }

    fn of(bases: &Bases, class: u8) -> f64 {
        bases.of(ClassId(class)).expect("it was seen")
    }

    #[test]
    fn the_first_window_says_how_long_each_class_takes() {
        let mut bases = Bases::unknown();
        assert_eq!(bases.of(ClassId(0)), None);
        bases.learn(&[seen(10, 0.1), seen(5, 0.4)], 1.0);
        assert!((of(&bases, 0) - 0.1).abs() < 1e-9 && (of(&bases, 1) - 0.4).abs() < 1e-9);
    }

    #[test]
    fn windows_move_ratios_and_never_the_scale() {
        let mut bases = Bases::unknown();
        bases.learn(&[seen(100, 0.1), seen(100, 0.4)], 1.0);
        for _ in 0..50 {
            // Twice as slow because of congestion, and the second class lighter than it was.
            bases.learn(&[seen(100, 0.2), seen(100, 0.2)], 1.0);
        }
        assert!((of(&bases, 0) + of(&bases, 1) - 0.5).abs() < 1e-9, "{bases:?}");
        assert!((of(&bases, 1) / of(&bases, 0) - 1.0).abs() < 0.01, "{bases:?}");
    }
}
