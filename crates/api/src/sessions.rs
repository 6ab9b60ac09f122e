//! `/v1/sessions`: what sessions do and what they are worth.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What was learned.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Sessions {
    /// Sessions that are remembered.
    pub remembered: u32,
    /// Those of them that are proven: they were served a class that another one names in `after`, or a
    /// transaction.
    pub proven: u32,
    /// Sessions that were forgotten before their time.
    pub evicted: SessionsEvicted,
    /// Answers that earned, older ones counting less.
    pub orders: f64,
    /// Enough was seen to rank requests by what they are worth.
    pub ranked_by_worth: bool,
    /// Each class.
    pub classes: Vec<ClassLearned>,
    /// Each combination of signals that a session has begun with.
    pub signals: Vec<SignalsSeen>,
}

/// Sessions that made room for others, as the table was full, since the process started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SessionsEvicted {
    /// Those that had proven nothing.
    pub fresh: u64,
    /// Those that were proven.
    pub proven: u64,
    /// Those of both whose address held more than its quota.
    pub over_quota: u64,
}

/// What was learned of a class.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClassLearned {
    /// What it is called.
    pub name: String,
    /// Visits by sessions that were not there before, older ones counting less.
    pub first_visits: f64,
    /// By sessions that were.
    pub later_visits: f64,
    /// Probability of each class to be asked for next, those below a thousandth left out.
    pub next: BTreeMap<String, f64>,
    /// Expected revenue of a session from here on.
    pub worth: f64,
    /// The same an hour or less ago; `null` if it was not known then.
    pub worth_before: Option<f64>,
    /// The file says what it is worth.
    pub pinned: bool,
    /// Expected revenue per second of work, of sessions that come here; `null` while it is not known.
    pub index_per_s: Option<f64>,
    /// The same of sessions that begin here.
    pub first_index_per_s: Option<f64>,
    /// Mean service time, if it is known.
    pub service_ms: Option<f64>,
    /// Part of its requests that is answered once it runs.
    pub completes: f64,
}

/// Sessions that began with these signals.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SignalsSeen {
    /// Which.
    pub shown: Vec<String>,
    /// How many, older ones counting less.
    pub sessions: f64,
    /// Those that ordered.
    pub ordered: f64,
    /// How much likelier that is than for all.
    pub times_as_likely: f64,
}
