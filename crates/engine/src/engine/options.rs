//! The engine's options and its status.

use bywash_units::{Ratio, TimeSpan};

use crate::catalog::{LimitSettings, TerminationSettings};
use crate::value::Learn;

/// The options of an engine.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// The policy that decides how many requests may run at once, with its parameters.
    pub limit: LimitSettings,
    /// The policy that decides how long a request of a class that can be stopped may run.
    pub termination: TerminationSettings,
    /// The longest time that a request may wait; `None` if it may wait for as long as its client
    /// does.
    pub max_wait: Option<TimeSpan>,
    /// The number of sessions that are remembered.
    pub sessions: u32,
    /// The time for which a session is remembered after it was last served.
    pub session_ttl: TimeSpan,
    /// The time after a lost attempt in which the same request counts as its repetition.
    pub retry_window: TimeSpan,
    /// How the worth of requests is learned.
    pub learn: Learn,
    /// The share of the slots that requests with slow clients may hold while others wait.
    pub slow_share: Ratio,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            limit: LimitSettings::from(16),
            termination: TerminationSettings::default(),
            max_wait: None,
            sessions: 65_536,
            session_ttl: TimeSpan::from_secs(30 * 60),
            retry_window: TimeSpan::from_secs(60),
            learn: Learn::default(),
            slow_share: Ratio::new(1.0 / 8.0),
        }
    }
}

/// The engine's current state, for people and metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Status {
    /// The number of slots.
    pub limit: u32,
    /// The number of requests that hold a slot.
    pub running: u32,
    /// The number of requests that wait in the queue.
    pub waiting: u32,
    /// The number of requests that wait under a rule.
    pub throttled_waiting: u32,
    /// How long the oldest request in the queue has waited.
    pub oldest: TimeSpan,
    /// Whether the newest requests of any standing or class go first, which means overload.
    pub lifo: bool,
    /// The recent mean service time; zero while unknown.
    pub mean_service: TimeSpan,
    /// The number of sessions that are remembered.
    pub sessions: u32,
}
