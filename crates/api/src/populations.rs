//! `/v1/populations`: which clients look alike, what their sessions do, and what they were given.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The populations of clients, by the number of their first requests. A first request is one of a
/// client whose session has not begun.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Populations {
    /// Whether the gateway tells populations apart (`identify.populations`) and its policy ranks
    /// first requests by them, in classes of mode `enforce`. Only the policy `session-first` does.
    pub ranks: bool,
    /// The number of populations that the gateway knows.
    pub count: usize,
    /// The populations with the most first requests, at most 100.
    pub populations: Vec<Population>,
    /// All other clients together.
    pub others: Population,
}

/// Clients whose requests have the same header fields. The numbers are of the recent past: those of
/// sessions weigh half after six hours, and all others after ten minutes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Population {
    /// The name: sixteen hexadecimal digits; empty for all others together.
    pub name: String,
    /// The name of the signed agent (`[agent.NAME]`) that the population is; `null` if it is none.
    #[serde(default)]
    pub agent: Option<String>,
    /// The state of the agent's appointment: `kept` for requests at the time at which the gateway
    /// told it to come again, `early` for requests before. `null` for all other requests.
    #[serde(default)]
    pub appointment: Option<String>,
    /// The name of the browser or program, with `0` in place of each number; empty if the requests
    /// name none; `null` if the gateway has not stored how the requests look.
    pub user_agent: Option<String>,
    /// The first language that the requests ask for; `null` if they ask for none.
    pub language: Option<String>,
    /// The protocol, such as `HTTP/1.1`.
    pub protocol: Option<String>,
    /// The names of the header fields by which the population is told apart, in their order.
    pub fields: Option<String>,
    /// Whether enough of its sessions have read on to rank it by itself. All others count as one.
    pub known: bool,
    /// The number of sessions that have begun.
    pub sessions: f64,
    /// The number of these that have read on: they asked for anything after their first request.
    pub read_on: f64,
    /// The fraction of its sessions that read on, divided by that fraction of all sessions.
    pub lift: f64,
    /// The level by which first requests rank: 0 is the best, 7 the worst.
    pub level: usize,
    /// The number of the override that sets the level; `null` if the level follows from the lift.
    pub overridden: Option<u32>,
    /// The number of first requests.
    pub requests: f64,
    /// The number of first requests that got a slot.
    pub started: f64,
    /// The number of first requests that were refused.
    pub refused: f64,
    /// The time for which first requests held slots, in seconds.
    pub service_s: f64,
}
