//! The options of the engine, and its status.

use bywash_units::{Ratio, TimeSpan};

use crate::catalog::{LimitSettings, TerminationSettings};
use crate::value::Learn;

/// The options of an engine.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// The concurrency policy, which decides how many requests may run at once, with its
    /// parameters.
    pub limit: LimitSettings,
    /// The termination policy, which decides how long a request that can be stopped may run, with
    /// its parameters.
    pub termination: TerminationSettings,
    /// The maximum time that a request may wait for a slot. With `None` it may wait for as long as
    /// its client does.
    pub max_wait: Option<TimeSpan>,
    /// The maximum number of sessions that are remembered.
    pub sessions: u32,
    /// The time for which a session is remembered after it was last served.
    pub session_ttl: TimeSpan,
    /// The time after a lost attempt within which the same request counts as its repetition.
    pub retry_window: TimeSpan,
    /// The settings for learning the worth of requests.
    pub learn: Learn,
    /// The maximum share of the slots that requests with slow clients hold while others wait.
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

/// A summary of the engine's present state, for people and metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Status {
    /// The number of slots: the present concurrency limit.
    pub limit: u32,
    /// The number of requests that hold a slot.
    pub running: u32,
    /// The number of requests that wait in the queue, without those in `throttled_waiting`.
    pub waiting: u32,
    /// The number of requests that wait under throttle rules.
    pub throttled_waiting: u32,
    /// How long the oldest request in the queue has waited; zero if none waits.
    pub oldest: TimeSpan,
    /// Whether newest first is in force for any class or standing, which means overload.
    pub lifo: bool,
    /// The recent mean time that a request holds its slot; zero while unknown.
    pub mean_service: TimeSpan,
    /// The number of sessions that are remembered now.
    pub sessions: u32,
}
