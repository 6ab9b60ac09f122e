//! The work of a visit to a class, and the probability that it completes once it runs.
//!
//! The means weigh recent requests: about the last hundred for the work, a few hundred for the
//! probability. That is quick enough to follow a slower database and slow enough not to follow one
//! request. A request whose client left while it ran counts with the time that it took.

use alloc::vec::Vec;

use bywash_units::TimeSpan;

use crate::mean_service::MeanService;
use crate::request::ClassId;

/// The work and the probability of completion by class.
#[derive(Clone, Debug)]
pub struct Works(Vec<Work>);

#[derive(Clone, Copy, Debug)]
struct Work {
    mean_service: MeanService,
    /// The share of the requests that ran which were answered in time.
    completes: f64,
}

const WEIGHT: f64 = 1.0 / 256.0;

impl Works {
    /// Creates the state for this number of classes before any request has run: all requests
    /// complete, and a class costs what others do.
    pub fn new(classes: usize) -> Self {
        Self(alloc::vec![Work { mean_service: MeanService::UNKNOWN, completes: 1.0 }; classes])
    }

    /// Makes room for more classes.
    pub fn grow(&mut self, classes: usize) {
        let more = Self::new(classes);
        self.0.extend(more.0.into_iter().skip(self.0.len()));
    }

    /// Notes that a request of `class` held a slot for `took`, and whether it was answered in time.
    pub fn ran(&mut self, class: ClassId, took: TimeSpan, in_time: bool) {
        let work = &mut self.0[class.index()];
        work.mean_service.learn(took);
        work.completes += WEIGHT * (f64::from(u8::from(in_time)) - work.completes);
    }

    /// Returns the mean work in seconds of a slot. While it is unknown for this class, returns the
    /// mean over the known classes.
    pub fn seconds(&self, class: ClassId) -> f64 {
        self.measured(class).unwrap_or_else(|| {
            let known = (0..self.0.len()).filter_map(|other| self.measured(ClassId(other as u8)));
            let (sum, count) = known.fold((0.0, 0.0), |(sum, n), work| (sum + work, n + 1.0));
            if count > 0.0 { sum / count } else { 1.0 }
        })
    }

    /// Returns the mean work in seconds of a slot, if a request of the class has run.
    pub fn measured(&self, class: ClassId) -> Option<f64> {
        let mean_service = self.0[class.index()].mean_service;
        (mean_service.seen() > 0).then(|| mean_service.mean().as_secs_f64())
    }

    /// Returns the probability that a running request is answered in time.
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
