//! How an engine is set up, and what it says of itself.

use bywash_units::{Share, Span};

use crate::catalog::{LimitSettings, TerminationSettings};
use crate::value::Learn;

/// How an engine is set up.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// How many requests may run at once: what decides on it, with its parameters.
    pub limit: LimitSettings,
    /// How long a request of a class that can be stopped may run: what decides on it.
    pub termination: TerminationSettings,
    /// How long a request may wait; `None` for as long as its client does.
    pub max_wait: Option<Span>,
    /// How many sessions are remembered.
    pub sessions: u32,
    /// For how long after it was last served.
    pub session_ttl: Span,
    /// For how long after an attempt was lost the same counts as its repetition.
    pub retry_window: Span,
    /// How learning what requests are worth goes.
    pub learn: Learn,
    /// What part of the slots requests with slow clients may hold while others wait.
    pub slow_share: Share,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            limit: LimitSettings::from(16),
            termination: TerminationSettings::default(),
            max_wait: None,
            sessions: 65_536,
            session_ttl: Span::from_secs(30 * 60),
            retry_window: Span::from_secs(60),
            learn: Learn::default(),
            slow_share: Share::new(1.0 / 8.0),
        }
    }
}

/// What the engine is doing, for people and metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Status {
    /// Slots.
    pub limit: u32,
    /// Requests that hold one.
    pub running: u32,
    /// Requests that wait for one.
    pub waiting: u32,
    /// Requests that a rule holds back.
    pub held: u32,
    /// How long the oldest of those that wait has waited.
    pub oldest: Span,
    /// Whether newest go first somewhere: it is overload.
    pub newest_first: bool,
    /// Mean service time of late; zero while unknown.
    pub mean_service: Span,
    /// Sessions remembered.
    pub sessions: u32,
}
