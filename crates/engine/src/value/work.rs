//! What a visit to a class costs, and how often it comes to its end once it runs.
//!
//! Means of the last few hundred requests: quick enough to follow a slower database, slow enough
//! not to follow one request. A request whose client left while it ran has cost what it has cost.

use alloc::vec::Vec;

use bywash_units::Span;

use crate::pace::Pace;
use crate::request::ClassId;

/// Costs and chances by class.
#[derive(Clone, Debug)]
pub struct Works(Vec<Work>);

#[derive(Clone, Copy, Debug)]
struct Work {
    pace: Pace,
    /// Share of those that ran which were answered in time.
    completes: f64,
}

const WEIGHT: f64 = 1.0 / 256.0;

impl Works {
    /// Nothing has run yet of so many classes: all of them end, and cost what others do.
    pub fn new(classes: usize) -> Self {
        Self(alloc::vec![Work { pace: Pace::UNKNOWN, completes: 1.0 }; classes])
    }

    /// Room for more classes.
    pub fn grow(&mut self, classes: usize) {
        let more = Self::new(classes);
        self.0.extend(more.0.into_iter().skip(self.0.len()));
    }

    /// A request of `class` held a slot for so long, and was answered in time or not.
    pub fn ran(&mut self, class: ClassId, took: Span, in_time: bool) {
        let work = &mut self.0[class.index()];
        work.pace.learn(took);
        work.completes += WEIGHT * (f64::from(u8::from(in_time)) - work.completes);
    }

    /// Mean seconds of a slot; those of all classes together while this one is unknown.
    pub fn seconds(&self, class: ClassId) -> f64 {
        self.measured(class).unwrap_or_else(|| {
            let known = (0..self.0.len()).filter_map(|other| self.measured(ClassId(other as u8)));
            let (sum, count) = known.fold((0.0, 0.0), |(sum, n), work| (sum + work, n + 1.0));
            if count > 0.0 { sum / count } else { 1.0 }
        })
    }

    /// Mean seconds of a slot, if one has run.
    pub fn measured(&self, class: ClassId) -> Option<f64> {
        let pace = self.0[class.index()].pace;
        (pace.seen() > 0).then(|| pace.mean().as_secs_f64())
    }

    /// Probability that a request which runs is answered in time.
    pub fn completes(&self, class: ClassId) -> f64 {
        self.0[class.index()].completes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_that_never_ran_costs_what_others_do() {
        let mut works = Works::new(3);
        works.ran(ClassId(0), Span::from_millis(100), true);
        works.ran(ClassId(1), Span::from_millis(300), true);
        assert!((works.seconds(ClassId(2)) - 0.2).abs() < 1e-9);
    }

    #[test]
    fn requests_that_end_for_nobody_lower_the_chance() {
        let mut works = Works::new(1);
        (0..1000).for_each(|i| works.ran(ClassId(0), Span::from_millis(100), i % 4 != 0));
        assert!((works.completes(ClassId(0)) - 0.75).abs() < 0.05);
    }
}
