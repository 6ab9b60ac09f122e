//! The options of an engine, and its status.

use bywash_units::{Share, Span};

use crate::catalog::{LimitSettings, TerminationSettings};
use crate::value::Learn;

/// How an engine is set up.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// The policy that decides how many requests may run at once, with its parameters.
    pub limit: LimitSettings,
    /// The policy that decides how long a request of a class that can be stopped may run.
    pub termination: TerminationSettings,
    /// How long a request may wait; `None` for as long as its client does.
    pub max_wait: Option<Span>,
    /// How many sessions are remembered.
    pub sessions: u32,
    /// How long a session is remembered after it was last served.
    pub session_ttl: Span,
    /// How long after an attempt was lost the same request counts as its repetition.
    pub retry_window: Span,
    /// How the worth of requests is learned.
    pub learn: Learn,
    /// The share of the slots that requests with slow clients may hold while others wait.
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

/// The state of the engine, for people and metrics.
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
