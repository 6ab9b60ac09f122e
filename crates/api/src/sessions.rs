//! `/v1/sessions`: how sessions proceed and what they are worth.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The knowledge that bywash has learned about sessions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Sessions {
    /// The number of sessions that are remembered.
    pub remembered: u32,
    /// The number of those that are proven: the session was served a transaction, or a class that
    /// another class names in `requires`.
    pub proven: u32,
    /// Sessions that were evicted early.
    pub evicted: SessionsEvicted,
    /// The number of responses with revenue; older ones count less.
    pub orders: f64,
    /// Whether enough was learned to rank requests by their worth.
    pub ranked_by_worth: bool,
    /// The classes.
    pub classes: Vec<ClassLearned>,
    /// The combinations of signals that sessions began with.
    pub signals: Vec<SignalsSeen>,
}

/// Sessions that were evicted because the table was full, since the process started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SessionsEvicted {
    /// The number of evicted sessions that had proven nothing.
    pub fresh: u64,
    /// The number of evicted sessions that were proven.
    pub proven: u64,
    /// The number of both whose address held more than its quota.
    pub over_quota: u64,
}

/// The knowledge about one class.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClassLearned {
    /// The class's name.
    pub name: String,
    /// The number of visits that began a session; older ones count less.
    pub first_visits: f64,
    /// The number of visits by sessions that had begun before; older ones count less.
    pub later_visits: f64,
    /// The probability that a session asks for each class next. Probabilities below 0.001 are left
    /// out.
    pub next: BTreeMap<String, f64>,
    /// The expected revenue of a session from here on.
    pub worth: f64,
    /// The same as it was up to an hour ago; `null` if it was unknown then.
    pub worth_before: Option<f64>,
    /// Whether the configuration file sets the worth.
    pub fixed: bool,
    /// The expected revenue per second of work, for sessions that continue here; `null` while
    /// unknown.
    pub index_per_s: Option<f64>,
    /// The same for sessions that begin here.
    pub first_index_per_s: Option<f64>,
    /// The mean service time, if known.
    pub service_ms: Option<f64>,
    /// The fraction of its requests that are answered in time once they run.
    pub completes: f64,
}

/// Sessions that began with one combination of signals.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SignalsSeen {
    /// The signals.
    pub shown: Vec<String>,
    /// The number of these sessions; older ones count less.
    pub sessions: f64,
    /// The number of those that ended in an order.
    pub ordered: f64,
    /// How many times more likely an order is than for all sessions.
    pub times_as_likely: f64,
}
