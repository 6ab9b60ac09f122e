//! The values that are read from a gateway: totals since its start, and gauges.

use std::sync::Arc;

use bywash_engine::{Outcome, Status};
use bywash_units::TimeSpan;

use crate::latencies::Latencies;

/// The values of a gateway at one moment.
#[derive(Clone, Debug)]
pub struct Reading {
    /// The wall-clock time of the reading, in milliseconds since 1970.
    pub at: u64,
    /// The time since the start of the process, by a monotonic clock.
    pub passed: TimeSpan,
    /// The gauges at this moment.
    pub gauges: Gauges,
    /// The counts of every class. The index of a class never changes.
    pub classes: Vec<ClassCounts>,
}

/// The gauges of a gateway: values of the moment, which are not totals.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Gauges {
    /// The state of the gateway's engine.
    pub engine: Status,
    /// Whether the gateway is bypassed: it takes no decisions.
    pub bypassed: bool,
    /// The number of open client connections.
    pub connections: u32,
}

/// The counts of a class, since the start of the process.
#[derive(Clone, Debug)]
pub struct ClassCounts {
    /// The class's name.
    pub name: Arc<str>,
    /// The number of requests that ended, in the order of `Outcome::ALL`.
    pub outcomes: [u64; Outcome::ALL.len()],
    /// The number of requests that were only observed, by what enforcing would have done, in the
    /// order of `Shadowed::ALL`.
    pub shadow: [u64; Shadowed::ALL.len()],
    /// The number of requests whose clients left before they ran.
    pub left_waiting: u64,
    /// The total service time of requests that were answered in time, in milliseconds.
    pub useful: u64,
    /// The total service time of all other requests, in milliseconds.
    pub wasted: u64,
    /// The total revenue of successful responses.
    pub revenue: f64,
    /// The distribution of the response times of requests that got their response.
    pub latencies: Latencies,
    /// The number of requests that wait for a slot at this moment.
    pub waiting: u32,
    /// The present limit on the service time of a request; `None` if its requests are never
    /// stopped.
    pub may_run: Option<TimeSpan>,
}

impl ClassCounts {
    /// Returns the counts since `before`, which is `None` if they began at zero. The values of the
    /// moment, `waiting` and `may_run`, are not changed.
    pub(crate) fn since(&self, before: Option<&Self>) -> Self {
        let Some(before) = before else { return self.clone() };
        Self {
            name: Arc::clone(&self.name),
            outcomes: differences(&self.outcomes, &before.outcomes),
            shadow: differences(&self.shadow, &before.shadow),
            left_waiting: self.left_waiting.saturating_sub(before.left_waiting),
            useful: self.useful.saturating_sub(before.useful),
            wasted: self.wasted.saturating_sub(before.wasted),
            revenue: self.revenue - before.revenue,
            latencies: self.latencies.since(&before.latencies),
            waiting: self.waiting,
            may_run: self.may_run,
        }
    }
}

fn differences<const N: usize>(now: &[u64; N], before: &[u64; N]) -> [u64; N] {
    core::array::from_fn(|at| now[at].saturating_sub(before[at]))
}

/// The effect that enforcing would have had on a request that was only observed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shadowed {
    /// The request would have run, as it did.
    Run,
    /// The request would have been rejected before it ran.
    Refused,
    /// The request would have been stopped while it ran.
    Stopped,
    /// The request would still have waited for a slot when its response was complete.
    Waiting,
}

impl Shadowed {
    /// All variants.
    pub const ALL: [Self; 4] = [Self::Run, Self::Refused, Self::Stopped, Self::Waiting];

    /// Returns the name of the effect in metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::Refused => "refused",
            Self::Stopped => "stopped",
            Self::Waiting => "waiting",
        }
    }
}
