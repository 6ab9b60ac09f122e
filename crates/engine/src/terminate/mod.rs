//! Termination: how long a request may run.
//!
//! One policy is one file with one type that implements [`Terminate`]. A request is only stopped if
//! its class allows it ([`Class::stop`](crate::Class::stop)), not before the minimum time that the
//! class grants, and not once its response has begun.
//!
//! There are two ways to decide. A *threshold* stops a request that has run for too long, whatever
//! the other requests do; the threshold may depend on the load. A *comparison* stops no request
//! while slots are free. Only when requests are about to be lost because all slots are taken does
//! it look for a running request whose further run promises less.

mod fixed;
mod loss;
mod marginal;
mod survival;

use alloc::boxed::Box;
use core::fmt::Debug;

use bywash_units::{Time, TimeSpan};

pub use fixed::{Fixed, Never};
pub use loss::Loss;
pub use marginal::Marginal;
pub use survival::Survival;

use crate::parameters::{Decides, Settings};
use crate::request::{Bounds, ClassId};

/// The policy kind of terminations: how long a request may run.
#[derive(Clone, Copy, Debug)]
pub enum Terminations {}

impl Decides for Terminations {
    type Build = fn(&TerminationSettings) -> Box<dyn Terminate>;
}

/// A termination with a value for each of its parameters.
pub type TerminationSettings = Settings<Terminations>;

/// A policy that stops running requests.
pub trait Terminate: Debug + Send {
    /// Advances the policy's clock to `now`. Called before everything else that happens.
    fn tick(&mut self, now: Time) {
        let _ = now;
    }

    /// Notes that a request of this class has arrived.
    fn arrived(&mut self, class: ClassId) {
        let _ = class;
    }

    /// Notes that a request that arrived at `came` has left. No client waited for it, whatever the
    /// load was.
    fn left(&mut self, class: ClassId, came: Time) {
        let _ = (class, came);
    }

    /// Notes that a request was lost before it ran, because all slots were taken.
    fn lost(&mut self, class: ClassId) {
        let _ = class;
    }

    /// Notes that a running request has ended.
    fn ended(&mut self, ran: Ran) {
        let _ = ran;
    }

    /// Returns how long a request of this class may run at present.
    fn may_run(&self, class: ClassId, bounds: Bounds) -> TimeSpan;

    /// Returns the expected number of completed requests per second if a request of this class that
    /// has run for `age` continues, over the span for which that number is greatest. Returns `None`
    /// if the policy does not compare.
    fn promise(&mut self, now: Time, class: ClassId, age: TimeSpan) -> Option<f64> {
        let _ = (now, class, age);
        None
    }
}

/// A request that ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ran {
    /// The request's class.
    pub class: ClassId,
    /// How long the request ran.
    pub took: TimeSpan,
    /// How the run ended.
    pub outcome: RunOutcome,
}

/// How the run of a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunOutcome {
    /// The request was done.
    Done,
    /// The request was stopped because of how long it ran.
    Stopped,
    /// The run ended in another way, without the request being done: the client left, the server
    /// failed, or the answer was an error.
    Cut,
}
