//! `/v1/requests`: single requests.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::reason::ReasonName;

/// The last requests that match the filters, the newest first.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Requests {
    /// The number of requests that are remembered.
    pub remembered: usize,
    /// The requests that match.
    pub requests: Vec<Request>,
}

/// A request that has ended, as the access log and `/v1/tap` show it. An unknown value is `null`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Request {
    /// When it ended, in milliseconds since 1970.
    pub time: u64,
    /// The address of its client.
    pub client: String,
    /// The status of its response; `null` if it got none.
    pub status: Option<u16>,
    /// The fault of a message that was not a valid request. Such a message has no further fields.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<String>,
    /// The request, the decision about it, and its outcome.
    #[serde(flatten)]
    pub life: Option<RequestLifecycle>,
}

/// A request, the decision about it, and its outcome.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RequestLifecycle {
    /// The name of the request: sixteen hexadecimal digits.
    pub request: String,
    /// The method.
    pub method: String,
    /// The path and query. Method and target together are cut to 512 characters.
    pub target: String,
    /// Whether the target was cut. Left out if it was not.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cut: bool,
    /// The protocol: `HTTP/1.1` or `HTTP/2`.
    pub protocol: String,
    /// The class.
    pub class: String,
    /// The service level, if levels are configured.
    pub level: Option<String>,
    /// The name of the session, from which its cookie cannot be derived.
    pub session: Option<String>,
    /// The standing of its session: `transaction`, `in_progress` or `new`.
    pub standing: Option<String>,
    /// The mode: `observe` or `enforce`.
    pub mode: String,
    /// The decision: `run`, `shed`, `stop` or `wait`. In mode `observe`, it was not carried out.
    pub decision: Option<String>,
    /// The reason for the decision.
    #[schemars(with = "Option<ReasonName>")]
    pub reason: Option<String>,
    /// The outcome.
    pub outcome: String,
    /// The time from arrival to the start of service, or to the end if it never ran.
    pub queue_wait_us: u64,
    /// The time from the start of service to the end.
    pub service_us: u64,
    /// The index of the server in the list of the upstream.
    pub server: Option<usize>,
    /// The number of the elephant whose rule applied to it.
    pub rule: Option<u32>,
    /// The bytes of the request's body.
    pub request_bytes: u64,
    /// The bytes of the response's body.
    pub response_bytes: u64,
}

/// One request with the reason explained: `/v1/requests/NAME`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Explained {
    /// The request.
    #[serde(flatten)]
    pub request: Request,
    /// The meaning of its `reason`.
    pub explanation: Option<String>,
}
