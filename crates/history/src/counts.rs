//! What is read of a gateway: counts since its start, and how it stands.

use std::sync::Arc;

use bywash_engine::{Outcome, Status};
use bywash_units::Span;

use crate::latencies::Latencies;

/// Everything at one moment.
#[derive(Clone, Debug)]
pub struct Reading {
    /// What the clock shows, in milliseconds since 1970.
    pub at: u64,
    /// How long that is since the start, by a clock that nobody sets.
    pub passed: Span,
    /// How it stands.
    pub gauges: Gauges,
    /// Every class, always in the same place.
    pub classes: Vec<ClassCounts>,
}

/// How a gateway stands.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Gauges {
    /// Its engine.
    pub engine: Status,
    /// No decisions are taken.
    pub bypassed: bool,
    /// Open connections of clients.
    pub connections: u32,
}

/// What was counted of a class.
#[derive(Clone, Debug)]
pub struct ClassCounts {
    /// What it is called.
    pub name: Arc<str>,
    /// How its requests ended.
    pub outcomes: [u64; Outcome::ALL.len()],
    /// How they would have ended, had what was decided been carried out: of those that are only observed.
    pub shadow: [u64; Shadowed::ALL.len()],
    /// Of those whose clients left, those that never ran.
    pub left_waiting: u64,
    /// Service time of requests that were answered in time, and of all others, in milliseconds.
    pub useful: u64,
    /// See `useful`.
    pub wasted: u64,
    /// What answers have brought.
    pub earned: f64,
    /// Response times of requests that got their answer.
    pub latencies: Latencies,
    /// Those that wait now.
    pub waiting: u32,
    /// How long one may run now, if it can be stopped.
    pub may_run: Option<Span>,
}

/// What enforcing would have made of a request that was observed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shadowed {
    /// It would have run as it did.
    Run,
    /// It would have been refused before it ran.
    Refused,
    /// It would have been stopped while it ran.
    Stopped,
    /// Its answer was complete before it would have had a slot.
    Waiting,
}

impl Shadowed {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Run, Self::Refused, Self::Stopped, Self::Waiting];

    /// Its name in metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::Refused => "refused",
            Self::Stopped => "stopped",
            Self::Waiting => "waiting",
        }
    }
}
