//! What was found, as an operator sees it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::clients::OneClient;

/// What a resource consists of, which decides what of a rule holds its use back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Resource {
    /// Processors: a request that runs keeps one of them busy at most.
    Processors,
    /// Bytes that go out to clients.
    Bytes,
    /// Requests that run at once.
    Slots,
    /// Disks, bytes that come in, stalls: what one request keeps busy of it at most is not known.
    #[default]
    Other,
}

/// Requests of one pattern that use much of a resource.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Found")]
pub struct Elephant {
    /// Which requests.
    pub pattern: String,
    /// Patterns that always come with it: it may be one of these, and costs are of all together.
    pub twins: Vec<String>,
    /// The resource that they use.
    pub resource: String,
    /// What that consists of.
    #[serde(default)]
    pub consists_of: Resource,
    /// Units of it that there are in a second: of two processors two seconds.
    pub capacity: f64,
    /// Share of its capacity that is used, by whomever.
    pub used: f64,
    /// Units of it for each request.
    pub cost: f64,
    /// Where that is in nineteen of twenty cases, about.
    pub interval: [f64; 2],
    /// Of all that is used, the part that these use.
    pub share: f64,
    /// Requests a second.
    pub rate: f64,
    /// Seconds for which one is worked on, on average.
    #[serde(default)]
    pub lasts: f64,
    /// It was seen for less than a quarter of an hour: costs are too low rather than too high.
    pub provisional: bool,
    /// Of the time that these requests took, at most this part was one client's.
    pub by_one: f64,
    /// Who that is, if it is much.
    #[serde(default)]
    pub one_client: Option<OneClient>,
    /// Some of them are transactions.
    pub transacts: bool,
    /// The seed's coefficient and its p-value, beside.
    pub correlation: Option<[f64; 2]>,
}

impl Elephant {
    /// Share of the resource's capacity that these requests use.
    pub fn of_capacity(&self) -> f64 {
        self.cost * self.rate / self.capacity
    }

    /// Whether one could use so much while it is worked on, by one processor. If not, something else does that happens at the same time, or work
    /// goes on behind its answer.
    pub fn is_plausible(&self) -> bool {
        self.consists_of != Resource::Processors || self.cost <= self.lasts
    }
}
