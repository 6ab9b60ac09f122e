//! What a request is worth: one number for every decision.
//!
//! Source: POLICIES §1, «value index» and «Learning»; research on the limits of policies. Value is
//! expected revenue per second of bottleneck time. It is learned while the site runs:
//!
//! - [`graph`] counts what sessions ask for after what, and what that earned;
//! - [`lift`] counts what entry signals mean;
//! - [`work`] knows what a visit to a class costs and how often it comes to its end;
//! - [`gittins`] turns these three into an index;
//! - [`learning`] puts them together every ten seconds and publishes [`Values`], which an order
//!   reads. No published worth moves faster than the drift allows, and what the operator pinned
//!   does not move at all.
//!
//! Whoever wants to raise the worth of his requests must order; whoever wants to lower that of
//! others must be served many sessions that do not order, for hours.

pub mod gittins;
pub mod graph;
pub mod learning;
pub mod lift;
pub mod work;

use alloc::vec::Vec;

pub use graph::{Counts, Place};
pub use learning::{Learn, Learned, Learning};

use crate::request::{ClassId, Signals};

/// What is published: the index of every state, and what signals multiply it by.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Values {
    /// Changes whenever anything else here does; 0: nothing is known yet.
    version: u32,
    classes: usize,
    /// By state: later visits first, then first visits.
    index: Vec<f64>,
    lift: Vec<f64>,
}

impl Values {
    /// Changes with every publication; 0 until enough is known to rank by it.
    pub const fn version(&self) -> u32 {
        self.version
    }

    /// Expected revenue per second of work of a visit there, by a session without signals of its
    /// own; `None` while it is not known.
    pub fn index(&self, place: Place) -> Option<f64> {
        let state = place.class.index() + if place.first { self.classes } else { 0 };
        (place.class.index() < self.classes).then(|| self.index.get(state).copied()).flatten()
    }

    /// Room for more classes, of which nothing is known.
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

    /// Publishes the index of one of so many classes as a process before this one did.
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

    /// What the index of browsing is multiplied by for a session that began with these signals.
    pub fn lift(&self, signals: Signals) -> f64 {
        self.lift.get(signals.index()).copied().unwrap_or(1.0)
    }
}

impl Place {
    /// A class that a session has come to after others.
    pub const fn later(class: ClassId) -> Self {
        Self { class, first: false }
    }

    /// A class that a session begins with.
    pub const fn first(class: ClassId) -> Self {
        Self { class, first: true }
    }
}
