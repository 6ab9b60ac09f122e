//! `/v1/sessions`: how sessions go from class to class, and their expected revenue.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The knowledge that bywash has learned about sessions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Sessions {
    /// The number of sessions that the gateway remembers now.
    pub remembered: u32,
    /// The number of remembered sessions that are proven: they were served a transaction, or a
    /// class that another class names in `requires`.
    pub proven: u32,
    /// The number of sessions that were evicted before they expired.
    pub evicted: SessionsEvicted,
    /// The number of responses with revenue; older responses count less.
    pub orders: f64,
    /// Whether enough has been learned to rank requests by their expected revenue.
    pub ranked_by_worth: bool,
    /// The statistics of each class.
    pub classes: Vec<ClassLearned>,
    /// The statistics of each combination of signals with which sessions began.
    pub signals: Vec<SignalsSeen>,
}

/// The number of sessions that were evicted because the table of sessions was full, since the
/// process started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SessionsEvicted {
    /// The number of evicted sessions that were not proven.
    pub fresh: u64,
    /// The number of evicted sessions that were proven.
    pub proven: u64,
    /// The number of evicted sessions of both kinds whose client address held more than its quota.
    pub over_quota: u64,
}

/// The statistics that were learned about one class.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClassLearned {
    /// The class's name.
    pub name: String,
    /// The number of requests of the class that began a session; older ones count less.
    pub first_visits: f64,
    /// The number of requests of the class by sessions that had begun before; older ones count
    /// less.
    pub later_visits: f64,
    /// The probability of each class as the class that a session requests next after this one.
    /// Probabilities below 0.001 are left out.
    pub next: BTreeMap<String, f64>,
    /// The expected revenue that a session still brings after a request of this class.
    pub worth: f64,
    /// The value of `worth` up to an hour ago; `null` if it was unknown then.
    pub worth_before: Option<f64>,
    /// Whether `worth` is set by the configuration file instead of learned.
    pub fixed: bool,
    /// The expected revenue per second of service, for sessions that continue with this class;
    /// `null` while unknown.
    pub index_per_s: Option<f64>,
    /// The expected revenue per second of service, for sessions that begin with this class; `null`
    /// while unknown.
    pub first_index_per_s: Option<f64>,
    /// The mean service time of a request in milliseconds; `null` while unknown.
    pub service_ms: Option<f64>,
    /// The fraction of the class's requests that are answered in time once they run.
    pub completes: f64,
}

/// The statistics of sessions that began with one combination of signals.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SignalsSeen {
    /// The names of the signals that these sessions had.
    pub shown: Vec<String>,
    /// The number of sessions that began with these signals; older ones count less.
    pub sessions: f64,
    /// The number of these sessions that ended in an order; older ones count less.
    pub ordered: f64,
    /// The probability of an order in these sessions, divided by the probability of an order in all
    /// sessions.
    pub times_as_likely: f64,
}
