//! The work of a visit to each class, and the probability that a request completes once it runs.
//!
//! Both means weigh recent requests more: about the last hundred for the work, and a few hundred
//! for the probability. So they follow a slower database quickly, but not a single request. A
//! request whose client left while it ran counts with the time that it ran.

use alloc::vec::Vec;

use bywash_units::TimeSpan;

use crate::mean_service::MeanService;
use crate::request::ClassId;

/// The mean work and the probability of completion, by class.
#[derive(Clone, Debug)]
pub struct Works(Vec<Work>);

#[derive(Clone, Copy, Debug)]
struct Work {
    mean_service: MeanService,
    /// The fraction of the requests that ran recently that was answered in time.
    completes: f64,
}

const WEIGHT: f64 = 1.0 / 256.0;

impl Works {
    /// Creates the state for `classes` classes before any request has run. It assumes that all
    /// requests complete, and that all classes cost the same.
    pub fn new(classes: usize) -> Self {
        Self(alloc::vec![Work { mean_service: MeanService::UNKNOWN, completes: 1.0 }; classes])
    }

    /// Makes room for at least `classes` classes.
    pub fn grow(&mut self, classes: usize) {
        let more = Self::new(classes);
        self.0.extend(more.0.into_iter().skip(self.0.len()));
    }

    /// Notes that a request of `class` has run. `took` is the time for which it held its slot.
    /// `in_time` says whether it was answered in time.
    pub fn ran(&mut self, class: ClassId, took: TimeSpan, in_time: bool) {
        let work = &mut self.0[class.index()];
        work.mean_service.learn(took);
        work.completes += WEIGHT * (f64::from(u8::from(in_time)) - work.completes);
    }

    /// Returns the mean work of a request of a class, in seconds of a slot. While it is unknown for
    /// this class, returns the mean over the known classes.
    pub fn seconds(&self, class: ClassId) -> f64 {
        self.measured(class).unwrap_or_else(|| {
            let known = (0..self.0.len()).filter_map(|other| self.measured(ClassId(other as u8)));
            let (sum, count) = known.fold((0.0, 0.0), |(sum, n), work| (sum + work, n + 1.0));
            if count > 0.0 { sum / count } else { 1.0 }
        })
    }

    /// Returns the mean work of a request of a class, in seconds of a slot. Returns `None` if no
    /// request of the class has run.
    pub fn measured(&self, class: ClassId) -> Option<f64> {
        let mean_service = self.0[class.index()].mean_service;
        (mean_service.seen() > 0).then(|| mean_service.mean().as_secs_f64())
    }

    /// Returns the probability that a request of a class is answered in time once it runs.
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
        works.ran(ClassId(0), TimeSpan::from_millis(100), true);
        works.ran(ClassId(1), TimeSpan::from_millis(300), true);
        assert!((works.seconds(ClassId(2)) - 0.2).abs() < 1e-9);
    }

    #[test]
    fn requests_that_end_for_nobody_lower_the_chance() {
        let mut works = Works::new(1);
        (0..1000).for_each(|i| works.ran(ClassId(0), TimeSpan::from_millis(100), i % 4 != 0));
        assert!((works.completes(ClassId(0)) - 0.75).abs() < 0.05);
    }
}
