//! Concurrency limits: how many requests run at once.
//!
//! One policy is one file with one type that implements [`Limit`]. The engine reports every request
//! that gets a slot and every one that gives it back, with its running time, and asks for the
//! number of slots. The engine takes no slot back when the number falls: running requests continue,
//! and none starts until fewer run than may.
//!
//! Why the limit matters although the order of requests is decided here: with too many slots the
//! requests wait inside the application, where the oldest goes first and requests without a client
//! are served. With too few the application is idle.

mod aimd;
mod fixed;
mod gradient2;
mod rounds;
mod slope;
mod vegas;

use alloc::boxed::Box;
use core::fmt::Debug;

use bywash_units::{Time, TimeSpan};

pub use aimd::Aimd;
pub use fixed::Fixed;
pub use gradient2::Gradient2;
pub use slope::Slope;
pub use vegas::Vegas;

use crate::parameters::{Decides, Settings};
use crate::request::ClassId;

/// The policy kind of concurrency limits: how many requests run at once.
#[derive(Clone, Copy, Debug)]
pub enum Limits {}

impl Decides for Limits {
    type Build = fn(&LimitSettings) -> Box<dyn Limit>;
}

/// A limit with a value for each of its parameters.
pub type LimitSettings = Settings<Limits>;

/// A concurrency limit: the present number of slots.
pub trait Limit: Debug + Send {
    /// Returns the number of slots; at least one.
    fn slots(&self) -> u32;

    /// Notes that a request has got a slot; `load` includes it.
    fn dispatched(&mut self, now: Time, load: Load) {
        let _ = (now, load);
    }

    /// Notes that a request has given its slot back; `load` still includes it.
    fn ended(&mut self, now: Time, load: Load, ended: Ended);

    /// Returns the time for the next call of [`Limit::on_timer`], if any. There is one only while
    /// the limit has made a change that must be undone at a certain time.
    fn next_timer(&self) -> Option<Time> {
        None
    }

    /// Handles the timer that [`Limit::next_timer`] asked for.
    fn on_timer(&mut self, now: Time) {
        let _ = now;
    }
}

/// The engine's load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    /// The number of requests that hold a slot.
    pub running: u32,
    /// Whether a request waits for a slot.
    pub is_full: bool,
}

/// A request that ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    /// The request's class.
    pub class: ClassId,
    /// How long the request held its slot.
    pub took: TimeSpan,
    /// The kind of measurement that this is.
    pub completion: Completion,
}

/// The kind of measurement that a request's running time is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Completion {
    /// The request was answered: a measurement.
    Answered,
    /// The application took longer than allowed, which counts as if it had dropped the request.
    TimedOut,
    /// The client left before the application had answered. The request would have run longer.
    Left,
    /// Nothing: the request failed for another reason.
    Void,
}

/// The bounds of a limit that moves.
#[derive(Clone, Copy, Debug)]
struct Range {
    min: u32,
    max: u32,
}

impl Range {
    /// Creates the bounds from `min` and `max`. A minimum above the maximum takes precedence.
    fn new(settings: &LimitSettings) -> Self {
        let min = settings.count("min");
        Self { min, max: settings.count("max").max(min) }
    }

    /// Returns the initial limit.
    fn initial(self, settings: &LimitSettings) -> f64 {
        self.clamp(f64::from(settings.count("initial")))
    }

    /// Returns the nearest allowed limit; the minimum for NaN.
    fn clamp(self, limit: f64) -> f64 {
        let limit = if limit.is_nan() { 0.0 } else { limit };
        limit.clamp(f64::from(self.min), f64::from(self.max))
    }
}
