//! What a rule will do, and what a trial has shown.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::elephant::{Elephant, Resource};
use crate::grants::Grants;

/// What is predicted of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Effect {
    /// Of the resource's capacity, the most that these requests can use under the rule.
    pub elephants_most: f64,
    /// Of the resource's capacity, what they use without it.
    pub elephants_now: f64,
    /// Requests a second of theirs that will not run, at the present rate and at least: who waits for something else than
    /// the resource holds a place meanwhile.
    pub held_back: f64,
}

/// Why nothing is predicted of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unpredicted {
    /// Of this resource a request may use any part while it runs.
    #[error(
        "none: what one request uses of this resource at most while it runs is not known, and others may get faster \
         with it or not; try the rule, which measures it"
    )]
    Unbounded,
    /// Nothing in the rule limits bytes.
    #[error("none: how many run at once does not limit bytes; give the rule --bytes or --rate")]
    NotBytes,
}

impl Effect {
    /// Of this rule on these requests.
    ///
    /// # Errors
    /// If the rule does not bound what they use.
    pub fn of(elephant: &Elephant, grants: &Grants) -> Result<Self, Unpredicted> {
        let by_rate = grants.rate.map(|rate| rate * elephant.cost);
        let at_once = f64::from(grants.at_once);
        let most = match elephant.consists_of {
            // One that runs fills one of them.
            Resource::Processors | Resource::Slots => {
                by_rate.map_or(at_once, |by_rate| by_rate.min(at_once))
            }
            Resource::Bytes => {
                let bytes = grants.bytes.map(|bytes| bytes as f64);
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

/// How a site was over some time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Gauge {
    /// When that time was over, where it matters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Timestamp>,
    /// How long, in seconds.
    pub seconds: f64,
    /// Share of the resource's capacity that was used; `null` where it is counted and not read.
    pub used: Option<f64>,
    /// Of these requests.
    pub elephants: Lot,
    /// Of all others, but for those that came under another elephant's rule.
    pub ants: Lot,
}

/// What requests got.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Lot {
    /// Answered in a second.
    pub answered: f64,
    /// Not answered in a second: refused, failed, or their clients left.
    pub refused: f64,
    /// Seconds until the answer was there, of one in two of those that came in that time; `null` if none of these was answered.
    pub p50: Option<f64>,
    /// Of all but one in a hundred of them.
    pub p99: Option<f64>,
}
