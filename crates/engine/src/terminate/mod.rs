//! How long a request may run.
//!
//! One policy is one file with one type that is a [`Terminate`]. Only requests of classes that say
//! that they can be stopped ([`Class::stop`](crate::Class::stop)) are ever stopped, none before the
//! least time that its class grants, and none once its response has begun.
//!
//! There are two ways to decide. A *threshold* stops whoever has run for too long, whatever goes on
//! beside it; what is too long may depend on the load. A *comparison* stops nobody while there is room:
//! only when requests are about to be lost because all slots are taken does it look for a running one
//! whose further run promises less.

mod fixed;
mod loss;
mod marginal;
mod survival;

use core::fmt::Debug;

use bywash_units::{Span, Time};

pub use fixed::{Fixed, Never};
pub use loss::Loss;
pub use marginal::Marginal;
pub use survival::Survival;

use crate::request::ClassId;

/// What a class that can be stopped grants its requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// No request is stopped before it has run for so long: the seed's LB.
    pub min: Span,
    /// None is of use to anybody that runs longer: the seed's UB.
    pub max: Span,
}

/// A policy that stops running requests.
pub trait Terminate: Debug + Send {
    /// It is `now`. Called before everything else that happens.
    fn tick(&mut self, now: Time) {
        let _ = now;
    }

    /// A request of this class has come.
    fn arrived(&mut self, class: ClassId) {
        let _ = class;
    }

    /// One that came at this time is an orphan: it did not arrive.
    fn left(&mut self, class: ClassId, came: Time) {
        let _ = (class, came);
    }

    /// One was lost before it ran, because all slots were taken.
    fn lost(&mut self, class: ClassId) {
        let _ = class;
    }

    /// One that ran is over.
    fn ended(&mut self, ran: Ran) {
        let _ = ran;
    }

    /// How long a request of this class may run, as things are.
    fn may_run(&self, class: ClassId, bounds: Bounds) -> Span;

    /// Requests that are expected to be done for each second that one of this class goes on, which has
    /// run for `age`: over the span for which that is most. `None`: it does not compare.
    fn promise(&mut self, now: Time, class: ClassId, age: Span) -> Option<f64> {
        let _ = (now, class, age);
        None
    }
}

/// A request that ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ran {
    /// Its class.
    pub class: ClassId,
    /// For how long.
    pub took: Span,
    /// How that ended.
    pub fate: Fate,
}

/// How the run of a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It was done.
    Done,
    /// It was stopped, for how long it ran.
    Stopped,
    /// It ended in another way, and was not done by then: its client left, the server failed, the answer was
    /// an error.
    Cut,
}
