//! How many requests run at once.
//!
//! One policy is one file with one type that is a [`Limit`]. It is told of every request that gets
//! a slot and of every one that gives it back, with how long it ran, and is asked how many slots
//! there are. The engine gives nothing back for a lower number: whoever runs goes on, and nobody
//! starts until fewer run than may.
//!
//! Why it matters where order is decided here: with too many slots the requests wait inside the
//! application, where the oldest goes first and the dead are served; with too few it stands idle.

mod aimd;
mod fixed;
mod gradient2;
mod rounds;
mod slope;
mod vegas;

use core::fmt::Debug;

use bywash_units::{Span, Time};

pub use aimd::Aimd;
pub use fixed::Fixed;
pub use gradient2::Gradient2;
pub use slope::Slope;
pub use vegas::Vegas;

use crate::catalog::LimitSettings;
use crate::request::ClassId;

/// How many slots there are for now.
pub trait Limit: Debug + Send {
    /// The slots: never none.
    fn slots(&self) -> u32;

    /// A request has got a slot; `load` is with it.
    fn dispatched(&mut self, now: Time, load: Load) {
        let _ = (now, load);
    }

    /// A request has given its slot back; `load` is still with it.
    fn ended(&mut self, now: Time, load: Load, ended: Ended);

    /// When [`Limit::on_timer`] is next to be called, if at all. There is one only while the limit
    /// has done something that time must undo.
    fn next_timer(&self) -> Option<Time> {
        None
    }

    /// The time that [`Limit::next_timer`] named has come.
    fn on_timer(&mut self, now: Time) {
        let _ = now;
    }
}

/// What goes on in the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    /// Requests that hold a slot.
    pub running: u32,
    /// Whether somebody waits for one.
    pub is_full: bool,
}

/// A request that ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    /// Its class.
    pub class: ClassId,
    /// How long it held its slot.
    pub took: Span,
    /// What can be learned from that.
    pub way: Way,
}

/// What can be learned from how long a request ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// It was answered: a measurement.
    Answered,
    /// The application took longer than it may: it is as if it had dropped the request.
    TimedOut,
    /// Nothing: its client left, or it failed for another reason.
    Void,
}

/// The bounds of a limit that moves.
#[derive(Clone, Copy, Debug)]
struct Range {
    min: u32,
    max: u32,
}

impl Range {
    /// From `min` and `max`; who sets the minimum above the maximum gets the minimum.
    fn new(settings: &LimitSettings) -> Self {
        let min = settings.count("min");
        Self { min, max: settings.count("max").max(min) }
    }

    /// Where to start.
    fn initial(self, settings: &LimitSettings) -> f64 {
        self.clamp(f64::from(settings.count("initial")))
    }

    /// The nearest that is allowed; the least for what is no number.
    fn clamp(self, limit: f64) -> f64 {
        let limit = if limit.is_nan() { 0.0 } else { limit };
        limit.clamp(f64::from(self.min), f64::from(self.max))
    }
}
