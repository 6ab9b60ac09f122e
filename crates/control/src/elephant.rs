//! A finding, as an operator sees it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::clients::OneClient;

/// The units that a resource consists of. They decide which limit of a rule holds back its use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Resource {
    /// Processors: a running request keeps at most one of them busy.
    Processors,
    /// Bytes that are sent to clients.
    Bytes,
    /// Requests that run at once.
    Slots,
    /// Disks, received bytes, stalls: the maximum that one request uses of such a resource is
    /// unknown.
    #[default]
    Other,
}

/// Requests of one pattern that use much of a resource.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Found")]
pub struct Elephant {
    /// The pattern that the requests match.
    pub pattern: String,
    /// Patterns that always occur together with this one. Any of them may cause the load, and the
    /// cost is that of all together.
    pub twins: Vec<String>,
    /// The resource that the requests use.
    pub resource: String,
    /// The units that the resource consists of.
    #[serde(default)]
    pub consists_of: Resource,
    /// The resource's capacity, in units per second. Two processors have two seconds per second.
    pub capacity: f64,
    /// The fraction of the capacity that all requests use together.
    pub used: f64,
    /// The estimated cost of one request, in units.
    pub cost: f64,
    /// The confidence interval of the cost, of about 95 %.
    pub interval: [f64; 2],
    /// The fraction of the used amount that these requests use.
    pub share: f64,
    /// The number of requests per second.
    pub rate: f64,
    /// How long one request is worked on, on average, in seconds.
    #[serde(default)]
    pub lasts: f64,
    /// Whether it was observed for less than 15 minutes. Then the cost is rather too low than too
    /// high.
    pub provisional: bool,
    /// The fraction of these requests' service time that one client caused, at most.
    pub by_one: f64,
    /// The client that caused the most of it, if it caused at least a tenth.
    #[serde(default)]
    pub one_client: Option<OneClient>,
    /// Whether some of the requests are transactions.
    pub transacts: bool,
    /// The paper's correlation coefficient and its p-value, for comparison.
    pub correlation: Option<[f64; 2]>,
}

impl Elephant {
    /// Returns the fraction of the resource's capacity that these requests use.
    pub fn of_capacity(&self) -> f64 {
        self.cost * self.rate / self.capacity
    }

    /// Returns whether one processor could do the estimated work while a request is worked on. If
    /// not, something else that happens at the same time does the work, or the work goes on after
    /// the response.
    pub fn is_plausible(&self) -> bool {
        self.consists_of != Resource::Processors || self.cost <= self.lasts
    }
}
