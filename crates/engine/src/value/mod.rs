//! The worth of requests, as the expected revenue per second of bottleneck time.
//!
//! Source: `policies.md` §1, «value index» and «Learning»; research on the limits of policies. The
//! worth is learned while the site runs:
//!
//! - [`graph`] counts which class sessions ask for after each class, and the revenue;
//! - [`lift`] counts what entry signals mean;
//! - [`work`] measures what a visit to a class costs and how often it completes;
//! - [`gittins`] turns these three into an index;
//! - [`learning`] combines them every ten seconds and publishes [`Values`], which a scheduler
//!   reads. No published value changes faster than `max_change_per_hour` allows, and a fixed value
//!   does not change at all.
//!
//! An attacker who wants to raise the worth of their own requests must make orders. To lower the
//! worth of others' requests, they must begin many served sessions that do not order, for hours.

pub mod gittins;
pub mod graph;
pub mod learning;
pub mod lift;
pub mod work;

use alloc::vec::Vec;

pub use graph::{Counts, Position, Step};
pub use learning::{Learn, Learned, Learning, OtherCounts};

use crate::request::{ClassId, Signals};

/// The published values: the index of every state of the session graph, and the lift of each
/// combination of signals.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Values {
    /// The number of the publication, which changes whenever another field changes; 0 while nothing
    /// is known.
    version: u32,
    classes: usize,
    /// The index by state, in revenue per second of work. Later visits of all classes come first,
    /// then their first visits.
    index: Vec<f64>,
    lift: Vec<f64>,
}

impl Values {
    /// Returns a version that changes with every publication. It is 0 until enough is known to rank
    /// requests.
    pub const fn version(&self) -> u32 {
        self.version
    }

    /// Returns the index of a session that visits this position: the revenue expected of it from
    /// this visit on, divided by the seconds of work that it still needs ([`gittins`]). The index
    /// is that of an average session, and [`Values::lift`] is the factor for its entry signals.
    /// Returns `None` while it is not known.
    pub fn index(&self, position: Position) -> Option<f64> {
        let state = position.class.index() + if position.first { self.classes } else { 0 };
        (position.class.index() < self.classes).then(|| self.index.get(state).copied()).flatten()
    }

    /// Makes room for more classes, about which nothing is known.
    fn grow(&mut self, classes: usize) {
        let (few, many) = (self.classes, classes.max(self.classes));
        if self.index.is_empty() || few == many {
            return;
        }
        let mut grown = alloc::vec![0.0; 2 * many];
        grown[..few].copy_from_slice(&self.index[..few]);
        grown[many..many + few].copy_from_slice(&self.index[few..]);
        (self.index, self.classes) = (grown, many);
    }

    /// Sets the published index of a class to that of an earlier process. `classes` is the present
    /// number of classes.
    fn restore(&mut self, class: ClassId, classes: usize, index: [f64; 2]) {
        if index.iter().any(|index| !index.is_finite() || *index < 0.0) {
            return;
        }
        if self.index.is_empty() {
            (self.index, self.classes) = (alloc::vec![0.0; 2 * classes], classes);
        }
        for (state, index) in [class.index(), class.index() + classes].into_iter().zip(index) {
            self.index[state] = index;
        }
        self.version = self.version.max(1);
    }

    /// Returns the lift of these signals: the factor on the index of browsing requests of a session
    /// that began with them.
    pub fn lift(&self, signals: Signals) -> f64 {
        self.lift.get(signals.index()).copied().unwrap_or(1.0)
    }
}

impl Position {
    /// Creates the position of a visit to a class that did not begin the session.
    pub const fn later(class: ClassId) -> Self {
        Self { class, first: false }
    }

    /// Creates the position of a visit to a class that began the session.
    pub const fn first(class: ClassId) -> Self {
        Self { class, first: true }
    }
}
