//! What was found, as an operator sees it.

use serde::{Deserialize, Serialize};

/// Requests of one pattern that use much of a resource.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Elephant {
    /// Which requests.
    pub pattern: String,
    /// Patterns that always come with it: it may be one of these, and costs are of all together.
    pub twins: Vec<String>,
    /// The resource that they use.
    pub resource: String,
    /// Seconds of it that there are in a second: of two processors two.
    pub capacity: f64,
    /// Share of its capacity that is used, by whomever.
    pub used: f64,
    /// Seconds of it for each request.
    pub cost: f64,
    /// Where that is in nineteen of twenty cases, about.
    pub interval: [f64; 2],
    /// Of all that is used, the part that these use.
    pub share: f64,
    /// Requests a second.
    pub rate: f64,
    /// It was seen for less than a quarter of an hour: costs are too low rather than too high.
    pub provisional: bool,
    /// Of the time that these requests took, the part of the one client who took most.
    pub by_one: f64,
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
}
