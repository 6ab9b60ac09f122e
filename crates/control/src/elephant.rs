//! A finding about an elephant, as an operator sees it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::clients::OneClient;

/// The kind of units that a resource consists of. It decides which limit of a rule restricts the
/// use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Resource {
    /// Processors: a running request keeps at most one of them busy.
    Processors,
    /// Bytes of responses that are sent to clients.
    Bytes,
    /// Slots: requests that run at once.
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
    /// The pattern that the elephant's requests match.
    pub pattern: String,
    /// Patterns that always occur together with this one. Any of them may cause the load, and
    /// `cost` is the cost of all together.
    pub twins: Vec<String>,
    /// The name of the resource that the requests use.
    pub resource: String,
    /// The kind of units that the resource consists of.
    #[serde(default)]
    pub consists_of: Resource,
    /// The resource's capacity, in units per second. Two processors have a capacity of two seconds
    /// per second.
    pub capacity: f64,
    /// The fraction of the capacity that is used in total, including the use that no request
    /// causes.
    pub used: f64,
    /// The estimated cost of one request, in units of the resource.
    pub cost: f64,
    /// The confidence interval of the cost, of about 95 %, in units of the resource.
    pub interval: [f64; 2],
    /// The share of the elephant's requests in the total use of the resource, as a fraction.
    pub share: f64,
    /// The number of the elephant's requests per second.
    pub rate: f64,
    /// The mean time that one request is worked on, in seconds.
    #[serde(default)]
    pub lasts: f64,
    /// Whether the elephant was observed for less than 15 minutes. Then the estimated cost is more
    /// often too low than too high.
    pub provisional: bool,
    /// The upper bound of the fraction of the elephant's service time that a single client caused.
    pub by_one: f64,
    /// The client that caused most of the elephant's service time. `null` if no client certainly
    /// caused at least a tenth of that time.
    #[serde(default)]
    pub one_client: Option<OneClient>,
    /// Whether some of the elephant's requests are transactions.
    pub transacts: bool,
    /// The correlation coefficient of the source paper and its p-value, for comparison.
    pub correlation: Option<[f64; 2]>,
}

impl Elephant {
    /// Returns the fraction of the resource's capacity that the elephant's requests use.
    pub fn of_capacity(&self) -> f64 {
        self.cost * self.rate / self.capacity
    }

    /// Returns whether one processor could do the estimated work during a request's service time.
    /// If not, another cause that coincides with the requests does the work, or the work continues
    /// after the response.
    pub fn is_plausible(&self) -> bool {
        self.consists_of != Resource::Processors || self.cost <= self.lasts
    }
}
