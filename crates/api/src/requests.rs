//! `/v1/requests`: the most recent requests, one by one.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::reason::ReasonName;

/// The most recent requests that match the filters, the newest first.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Requests {
    /// The number of requests that the gateway remembers, whether they match or not.
    pub remembered: usize,
    /// The requests that match the filters.
    pub requests: Vec<Request>,
}

/// A request that has ended, as the access log and `/v1/tap` show it. An unknown value is `null`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Request {
    /// When the request ended, in milliseconds since 1970.
    pub time: u64,
    /// The address of the client.
    pub client: String,
    /// The status of the response; `null` if the client got none.
    pub status: Option<u16>,
    /// Why the message was not a valid HTTP request. A record with a fault has no further fields.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<String>,
    /// The request, the decision about it, and its outcome.
    #[serde(flatten)]
    pub life: Option<RequestLifecycle>,
}

/// A request, the decision about it, and its outcome.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RequestLifecycle {
    /// The identifier of the request: sixteen hexadecimal digits.
    pub request: String,
    /// The method of the request.
    pub method: String,
    /// The path and query of the request. Method and target together are cut to 512 characters.
    pub target: String,
    /// Whether the target was cut. Absent if it was not.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cut: bool,
    /// The protocol: `HTTP/1.1` or `HTTP/2`.
    pub protocol: Cow<'static, str>,
    /// The name of the request's class.
    pub class: String,
    /// The service level of the request; `null` if no levels are configured.
    pub level: Option<String>,
    /// A pseudonym of the session, from which the value of its cookie cannot be derived.
    pub session: Option<String>,
    /// The standing of the session: `transaction`, `in_progress` or `new`.
    pub standing: Option<Cow<'static, str>>,
    /// The name of the agent that signed the request (`[agent.NAME]`); `null` if none has.
    #[serde(default)]
    pub agent: Option<String>,
    /// The name of the client's population, if its session was new; see `/v1/populations`.
    #[serde(default)]
    pub population: Option<String>,
    /// The level by which the request ranked among first requests when it arrived, by its
    /// population and the first target of its visit: 0 is the best, 7 the worst.
    #[serde(default)]
    pub population_level: Option<usize>,
    /// The mode that applied to the request: `observe` or `enforce`.
    pub mode: Cow<'static, str>,
    /// The decision about the request: `run`, `shed`, `stop` or `wait`. If `mode` is `observe`, the
    /// gateway did not carry out the decision.
    pub decision: Option<Cow<'static, str>>,
    /// The reason for the decision.
    #[schemars(with = "Option<ReasonName>")]
    pub reason: Option<Cow<'static, str>>,
    /// The outcome of the request, such as `served` or `shed`.
    pub outcome: Cow<'static, str>,
    /// The time in microseconds from arrival to the start of service, or to the end if the request
    /// never ran.
    pub queue_wait_us: u64,
    /// The time in microseconds from the start of service to the end.
    pub service_us: u64,
    /// The index of the server in the list of the upstream; `null` if no server got the request.
    pub server: Option<usize>,
    /// The number that identifies the elephant (a route that causes much of the load) whose rule
    /// applied to the request; `null` if no rule did.
    pub rule: Option<u32>,
    /// The number of bytes of the request's body.
    pub request_bytes: u64,
    /// The number of bytes of the response's body.
    pub response_bytes: u64,
}

/// One request with its reason explained, from `/v1/requests/NAME`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Explained {
    /// The request.
    #[serde(flatten)]
    pub request: Request,
    /// The meaning of the request's `reason`; `null` if it has none.
    pub explanation: Option<String>,
}
