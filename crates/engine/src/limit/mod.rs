//! Concurrency limits, which decide how many requests run at once.
//!
//! Each policy is one file with one type that implements [`Limit`]. The engine reports to the limit
//! each request that gets a slot. It also reports each request that gives its slot back, with its
//! running time. The engine asks the limit for the number of slots. When that number falls, the
//! engine takes no slot back: running requests continue, and none starts until fewer run than may.
//!
//! The limit matters although the engine decides the order of requests. With too many slots,
//! requests wait inside the application, where the oldest goes first and requests without a client
//! are served. With too few, the application is idle.

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

/// The kind of policy that decides how many requests run at once.
#[derive(Clone, Copy, Debug)]
pub enum Limits {}

impl Decides for Limits {
    type Build = fn(&LimitSettings) -> Box<dyn Limit>;
}

/// A concurrency policy with a value for each of its parameters.
pub type LimitSettings = Settings<Limits>;

/// A concurrency limit, which says how many slots there are at present.
pub trait Limit: Debug + Send {
    /// Returns the present number of slots; at least one.
    fn slots(&self) -> u32;

    /// Notes that a request has got a slot. The counts in `load` already include that request.
    fn dispatched(&mut self, now: Time, load: Load) {
        let _ = (now, load);
    }

    /// Notes that a request has given its slot back. The counts in `load` still include that
    /// request.
    fn ended(&mut self, now: Time, load: Load, ended: Ended);

    /// Returns the time for the next call of [`Limit::on_timer`]; `None` if no call is due. A call
    /// is due only while a temporary change of the limit is in force, such as a probe.
    fn next_timer(&self) -> Option<Time> {
        None
    }

    /// Handles the timer that [`Limit::next_timer`] asked for.
    fn on_timer(&mut self, now: Time) {
        let _ = now;
    }
}

/// The engine's load at the moment of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    /// The number of requests that hold a slot.
    pub running: u32,
    /// Whether a waiting request would get a slot that became free.
    pub is_full: bool,
}

/// The facts that a limit learns about a request that has given its slot back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    /// The request's class.
    pub class: ClassId,
    /// How long the request held its slot.
    pub took: TimeSpan,
    /// The meaning of the running time as a measurement.
    pub completion: Completion,
}

/// The meaning of a request's running time as a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Completion {
    /// The request was answered. The running time is its latency.
    Answered,
    /// The application took longer than allowed. This counts as if the application had dropped the
    /// request.
    TimedOut,
    /// The client left before the application had answered. The latency would have been longer than
    /// the running time.
    Left,
    /// The request failed for another reason. The running time is not a measurement.
    Void,
}

/// The bounds of a limit that changes, in slots.
#[derive(Clone, Copy, Debug)]
struct Range {
    min: u32,
    max: u32,
}

impl Range {
    /// Creates the bounds from the parameters `min` and `max`. If the minimum is above the maximum,
    /// the minimum counts for both.
    fn new(settings: &LimitSettings) -> Self {
        let min = settings.count("min");
        Self { min, max: settings.count("max").max(min) }
    }

    /// Returns the initial limit, in slots.
    fn initial(self, settings: &LimitSettings) -> f64 {
        self.clamp(f64::from(settings.count("initial")))
    }

    /// Returns the nearest limit within the bounds; the minimum for NaN.
    fn clamp(self, limit: f64) -> f64 {
        let limit = if limit.is_nan() { 0.0 } else { limit };
        limit.clamp(f64::from(self.min), f64::from(self.max))
    }
}
