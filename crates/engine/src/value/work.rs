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

    /// A request of `class` held a slot for so long.
    pub fn took(&mut self, class: ClassId, span: Span) {
        self.0[class.index()].pace.learn(span);
    }

    /// One that ran was answered in time, or not.
    pub fn ended(&mut self, class: ClassId, in_time: bool) {
        let work = &mut self.0[class.index()];
        work.completes += WEIGHT * (f64::from(u8::from(in_time)) - work.completes);
    }

    /// Mean seconds of a slot; those of all classes together while this one is unknown.
    pub fn seconds(&self, class: ClassId) -> f64 {
        let pace = self.0[class.index()].pace;
        if pace.seen() > 0 {
            return pace.mean().as_secs_f64();
        }
        let known = self.0.iter().filter(|work| work.pace.seen() > 0);
        let (sum, count) = known.fold((0.0, 0.0), |(sum, count), work| {
            (sum + work.pace.mean().as_secs_f64(), count + 1.0)
        });
        if count > 0.0 { sum / count } else { 1.0 }
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
        works.took(ClassId(0), Span::from_millis(100));
        works.took(ClassId(1), Span::from_millis(300));
        assert!((works.seconds(ClassId(2)) - 0.2).abs() < 1e-9);
    }

    #[test]
    fn requests_that_end_for_nobody_lower_the_chance() {
        let mut works = Works::new(1);
        (0..1000).for_each(|i| works.ended(ClassId(0), i % 4 != 0));
        assert!((works.completes(ClassId(0)) - 0.75).abs() < 0.05);
    }
}
