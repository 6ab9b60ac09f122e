//! The base of each class: the time that its requests take when no request waits inside the
//! application.
//!
//! Divided by the base, latency becomes a ratio, which is 1 when nothing waits inside. So a
//! different mix of classes is not mistaken for congestion. The common scale of the bases is
//! learned separately from their ratios to each other. Ratios are learned from every window, the
//! scale only where few requests run. If every window changed the scale, congestion would become
//! part of the base that it is measured by.

use alloc::vec;
use alloc::vec::Vec;

use crate::request::{ClassId, ClassSet};

/// The base of each class in seconds; zero while nothing is known about the class.
#[derive(Debug)]
pub(super) struct Bases(Vec<f64>);

/// The answered requests of one class in a window.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct OfClass {
    pub(super) answers: u32,
    /// The total latency of these requests, in seconds.
    pub(super) took: f64,
}

/// The minimum of a base, in seconds: a nanosecond.
const LEAST: f64 = 1e-9;
/// The maximum of a base, in seconds: more than any request may take.
const MOST: f64 = 1e7;
/// The weight of what was learned before about the base of a class, as a number of answers.
const PRIOR_ANSWERS: f64 = 200.0;

impl Bases {
    pub(super) fn unknown() -> Self {
        Self(vec![0.0; ClassSet::MOST])
    }

    /// Returns the base of a class in seconds; `None` while it is unknown.
    pub(super) fn of(&self, class: ClassId) -> Option<f64> {
        Some(self.0[class.index()]).filter(|base| *base > 0.0)
    }

    /// Returns whether the base of any class is known.
    pub(super) fn is_known(&self) -> bool {
        self.0.iter().any(|base| *base > 0.0)
    }

    /// Multiplies all bases by `factor`, because requests take `factor` times as long as assumed.
    /// One call changes bases by a factor of 100 at most.
    pub(super) fn scale(&mut self, factor: f64) {
        let factor = factor.clamp(0.01, 100.0);
        for base in self.0.iter_mut().filter(|base| **base > 0.0) {
            *base = (*base * factor).clamp(LEAST, MOST);
        }
    }

    /// Moves the ratios between the bases towards those of a window, in which requests took
    /// `inflation` times their base. The sum of the bases over the window's requests stays the
    /// same.
    pub(super) fn learn(&mut self, window: &[OfClass], inflation: f64) {
        let (mut before, mut after) = (0.0, 0.0);
        for (base, seen) in self.0.iter_mut().zip(window).filter(|(_, seen)| seen.answers > 0) {
            let answers = f64::from(seen.answers);
            let shown = (seen.took / answers / inflation).clamp(LEAST, MOST);
            if *base > 0.0 {
                before += answers * *base;
                *base += answers / (answers + PRIOR_ANSWERS) * (shown - *base);
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
            // Congestion makes requests twice as slow, and requests of the second class are lighter
            // than before.
            bases.learn(&[seen(100, 0.2), seen(100, 0.2)], 1.0);
        }
        assert!((of(&bases, 0) + of(&bases, 1) - 0.5).abs() < 1e-9, "{bases:?}");
        assert!((of(&bases, 1) / of(&bases, 0) - 1.0).abs() < 0.01, "{bases:?}");
    }
}
