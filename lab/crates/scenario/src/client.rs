//! The behaviour of clients: how long they think and wait, and when they retry.

use std::fmt;

use bywash_units::TimeSpan;
use serde::{Deserialize, Serialize};

use crate::distribution::Distribution;

/// Whether the server side notices that a client closes its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Closes {
    /// The departure is noticed, and the request can be removed from the queue or stopped.
    Visible,
    /// An intermediary hides it (a CDN, a pooling proxy), and the request looks like any other.
    Hidden,
    /// The departure is noticed while the request waits for a slot or inside; a request in service
    /// is served to its end. The database of paper 4 checks a mark when a thread gets its turn, and
    /// not again [paper 4.6]. Only the simulator can run this.
    Waiting,
}

impl Closes {
    /// Returns the name used in files and results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Visible => "visible",
            Self::Hidden => "hidden",
            Self::Waiting => "waiting",
        }
    }
}

impl fmt::Display for Closes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The event that ends a client's patience.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WaitsFor {
    /// The end of the answer.
    #[default]
    Answer,
    /// The beginning of service: a client in service stays. Only the simulator can run this.
    Service,
}

/// The behaviour of clients.
#[derive(Clone, Copy, Debug)]
pub struct Client {
    /// The pause between a page and the next request.
    pub think: Distribution,
    /// How long a client waits for an answer.
    pub patience: Distribution,
    /// The event that the client waits for.
    pub waits_for: WaitsFor,
    /// Attempts at a request beyond the first. After them the session is abandoned.
    pub retries: u32,
    /// The number of these attempts that may follow a refusal or an error; 0 for clients that do
    /// not retry after a refusal.
    pub retries_after_refusal: u32,
    /// The pause before the retry of a request that timed out.
    pub pause_after_timeout: TimeSpan,
    /// The pause before the retry of a request that was refused.
    pub pause_after_refusal: Distribution,
    /// Whether the client, before that pause, waits as long as the refusal asked (`Retry-After`).
    pub keeps_retry_after: bool,
    /// Whether a retry declares that it is one.
    pub declares_retries: bool,
    /// The probability that a disappointed client gives up although retries are left.
    pub abandon: f64,
}
