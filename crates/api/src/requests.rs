//! Single requests: `/v1/requests`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Some of the last requests, the newest first.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Requests {
    /// How many are remembered.
    pub remembered: usize,
    /// Those that were asked for.
    pub requests: Vec<Request>,
}

/// A request that has ended, as the access log and `/v1/tap` show it. What is not known of it is `null`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Request {
    /// When it ended, in milliseconds since 1970.
    pub time: u64,
    /// Address of its client.
    pub client: String,
    /// Of its answer; `null` if it got none.
    pub status: Option<u16>,
    /// What was wrong with a message that was no request; there is nothing more of such a one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<String>,
    /// What it was and became.
    #[serde(flatten)]
    pub life: Option<Life>,
}

/// What a request was, what was decided about it, and what came of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Life {
    /// Its name: sixteen hexadecimal digits.
    pub request: String,
    /// Its method.
    pub method: String,
    /// Path and query. Method and target together are cut to 512 characters.
    pub target: String,
    /// The target was cut: it goes on. Left out if it was not.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cut: bool,
    /// `HTTP/1.1`, `HTTP/2`.
    pub protocol: String,
    /// Its class.
    pub class: String,
    /// Its level, if there are levels.
    pub level: Option<String>,
    /// Its session, by a name that says nothing of the cookie.
    pub session: Option<String>,
    /// What its session had proven: `transaction`, `in_progress`, `new`.
    pub standing: Option<String>,
    /// `observe` or `enforce`.
    pub mode: String,
    /// `run`, `shed`, `stop`, `wait`; of one that was only observed: what would have been.
    pub decision: Option<String>,
    /// Why.
    pub reason: Option<String>,
    /// What became of it.
    pub outcome: String,
    /// From its arrival to the start of service, or to its end.
    pub queue_wait_us: u64,
    /// From there to its end.
    pub service_us: u64,
    /// The server's place in the list of the upstream.
    pub server: Option<usize>,
    /// Number of the elephant whose rule it came under.
    pub rule: Option<u32>,
    /// Of its body.
    pub request_bytes: u64,
    /// Of its answer's body.
    pub response_bytes: u64,
}

/// One request with the reason in words: `/v1/requests/NAME`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Explained {
    /// The request.
    #[serde(flatten)]
    pub request: Request,
    /// What its `reason` means.
    pub explanation: Option<String>,
}
