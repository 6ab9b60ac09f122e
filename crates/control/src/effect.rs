//! The predicted effect of a rule, and the measured result of a trial.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::elephant::{Elephant, Resource};
use crate::rule_limits::RuleLimits;

/// The predicted effect of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Effect {
    /// The maximum fraction of the resource's capacity that the elephant's requests can use under
    /// the rule.
    pub elephants_most: f64,
    /// The fraction of the resource's capacity that the elephant's requests use without the rule.
    pub elephants_now: f64,
    /// The number of the elephant's requests per second that the rule will prevent from running, at
    /// the present rate. The number is a lower bound: a request that waits for something other than
    /// the resource still counts as running under the rule.
    pub held_back: f64,
}

/// Why no effect is predicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unpredicted {
    /// The amount of the resource that one request can use while it runs is unknown.
    #[error(
        "none: it is not known how much of this resource one request can use while it runs, and \
         whether others get faster with the rule; try the rule to measure it"
    )]
    Unbounded,
    /// The resource is bytes, and the rule does not limit bytes.
    #[error(
        "none: a limit on requests at once does not limit bytes; give the rule --bytes or --rate"
    )]
    NotBytes,
}

impl Effect {
    /// Predicts the effect of a rule with limits `limits` on the requests of `elephant`.
    ///
    /// # Errors
    /// If the limits do not bound the use of the resource by these requests.
    pub fn of(elephant: &Elephant, limits: &RuleLimits) -> Result<Self, Unpredicted> {
        let by_rate = limits.rate.map(|rate| rate * elephant.cost);
        let max_concurrency = f64::from(limits.max_concurrency);
        let most = match elephant.consists_of {
            // A running request uses at most one processor or one slot.
            Resource::Processors | Resource::Slots => {
                by_rate.map_or(max_concurrency, |by_rate| by_rate.min(max_concurrency))
            }
            Resource::Bytes => {
                let bytes = limits.bytes.map(|bytes| bytes as f64);
                let limits = [bytes, by_rate].into_iter().flatten();
                limits.min_by(f64::total_cmp).ok_or(Unpredicted::NotBytes)?
            }
            Resource::Other => return Err(Unpredicted::Unbounded),
        };
        let now = elephant.of_capacity();
        let most = (most / elephant.capacity).min(1.0);
        let runs = if now > 0.0 { (most / now).min(1.0) } else { 1.0 };
        Ok(Self {
            elephants_most: most,
            elephants_now: now,
            held_back: elephant.rate * (1.0 - runs),
        })
    }
}

/// The performance of a site over a period.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Gauge {
    /// When the period ended. Absent in a measurement for which the end is irrelevant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Timestamp>,
    /// The length of the period, in seconds.
    pub seconds: f64,
    /// The fraction of the resource's capacity that was used. `null` if the resource was not read
    /// in the period, and always for `slots` and `bytes`, which are counted from requests.
    pub used: Option<f64>,
    /// The responses to the elephant's requests.
    pub elephants: ResponseStats,
    /// The responses to all other requests, except those under another elephant's rule.
    pub ants: ResponseStats,
}

/// Statistics of the responses to a group of requests, over a period.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ResponseStats {
    /// The number of requests per second that were answered.
    pub answered: f64,
    /// The number of requests per second that were not answered: rejected, failed, or abandoned by
    /// their clients.
    pub refused: f64,
    /// The median time to the complete response, in seconds, of the requests that arrived in the
    /// period; `null` if none of them was answered.
    pub p50: Option<f64>,
    /// The 99th percentile of the time to the complete response, in seconds, of the requests that
    /// arrived in the period; `null` if none of them was answered.
    pub p99: Option<f64>,
}
