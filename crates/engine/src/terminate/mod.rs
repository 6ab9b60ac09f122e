//! Terminations, which decide how long a request may run.
//!
//! Each policy is one file with one type that implements [`Terminate`]. A request is stopped only
//! if its class allows it ([`Class::stop`](crate::Class::stop)). It is not stopped before the
//! minimum time that the class grants, nor once its response has begun.
//!
//! A policy decides in one of two ways. A *threshold* stops a request that has run for too long,
//! whatever the other requests do. The threshold may depend on the load. A *comparison* stops no
//! request while slots are free. It looks for a running request whose further run promises less
//! than the waiting ones, and only when requests are about to be lost because all slots are taken.

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

/// The kind of policy that decides how long a request may run.
#[derive(Clone, Copy, Debug)]
pub enum Terminations {}

impl Decides for Terminations {
    type Build = fn(&TerminationSettings) -> Box<dyn Terminate>;
}

/// A termination policy with a value for each of its parameters.
pub type TerminationSettings = Settings<Terminations>;

/// A termination policy: it decides when running requests are stopped.
pub trait Terminate: Debug + Send {
    /// Advances the policy's clock to `now`. The engine calls this before any other method for the
    /// same moment.
    fn tick(&mut self, now: Time) {
        let _ = now;
    }

    /// Notes that a request of this class has arrived, whether or not it waits.
    fn arrived(&mut self, class: ClassId) {
        let _ = class;
    }

    /// Notes that a request has left for reasons other than the load, for example because its
    /// client left. `came` is the time of its arrival.
    fn left(&mut self, class: ClassId, came: Time) {
        let _ = (class, came);
    }

    /// Notes that a request of this class was refused before it ran, because all slots were taken.
    fn lost(&mut self, class: ClassId) {
        let _ = class;
    }

    /// Notes that a running request has ended.
    fn ended(&mut self, ran: Ran) {
        let _ = ran;
    }

    /// Returns the time for which a request of this class may run at present, within `bounds`.
    fn may_run(&self, class: ClassId, bounds: Bounds) -> TimeSpan;

    /// Returns the promise of a request of this class that has run for `age`: the expected number
    /// of completed requests per second if it continues for the time that makes this number
    /// greatest. Returns `None` if the policy does not compare requests, or knows too little.
    fn promise(&mut self, now: Time, class: ClassId, age: TimeSpan) -> Option<f64> {
        let _ = (now, class, age);
        None
    }
}

/// The facts that a policy learns about a request that has run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ran {
    /// The request's class.
    pub class: ClassId,
    /// The time for which the request held its slot.
    pub took: TimeSpan,
    /// How the run of the request ended.
    pub outcome: RunOutcome,
}

/// How the run of a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunOutcome {
    /// The application did what the request asked for.
    Done,
    /// The request was stopped because it had run for too long.
    Stopped,
    /// The run ended in another way and the request was not done: the client left, the server
    /// failed, or the answer was an error.
    Cut,
}
