//! `/v1/status`: the state of the gateway.

use std::collections::BTreeMap;

use bywash_history::OutcomeCounts;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The state of the gateway. Counts are since the start of the process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Status {
    /// The version of the program.
    pub version: String,
    /// The mode of classes that set none: `observe` or `enforce`. While the gateway takes no
    /// decisions it is `bypass`.
    pub mode: String,
    /// The process ID.
    pub pid: u32,
    /// The first 16 hexadecimal digits of the SHA-256 of the configuration file in force, as
    /// `sha256sum FILE | cut -c1-16` prints them.
    pub config_hash: String,
    /// Whether the process is about to end.
    pub draining: bool,
    /// The time since the process started.
    pub uptime_ms: u64,
    /// The concurrency limit: the number of slots.
    pub limit: u32,
    /// The number of requests that hold a slot.
    pub running: u32,
    /// The number of requests that wait for a slot.
    pub waiting: u32,
    /// The number of requests that do not wait yet, because their bodies are still being read.
    #[serde(default)]
    pub uploads: u64,
    /// The number of running requests whose clients have left while the application works on.
    #[serde(default)]
    pub departed: u64,
    /// The number of requests that wait under a rule for an elephant.
    pub throttled_waiting: u32,
    /// How long the oldest waiting request has waited.
    pub oldest_wait_ms: u64,
    /// Whether the newest request goes first, because of overload.
    pub lifo: bool,
    /// The recent mean service time; zero while unknown.
    pub mean_service_ms: f64,
    /// The number of sessions that are remembered.
    pub sessions: u32,
    /// The cookie that identifies sessions, and the cookies that the application sets. Missing if
    /// `identify.session` is `token` or `none`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_cookie: Option<SessionCookieStatus>,
    /// The number of open client connections.
    pub connections: u64,
    /// The number of `WebSocket`s and event streams, which are counted apart from the limit.
    pub streams: u64,
    /// The memory that clients make the gateway hold.
    pub memory: MemoryStatus,
    /// The servers of the upstream.
    pub servers: Vec<ServerStatus>,
    /// The scheduler: which waiting request gets the next slot.
    pub policy: PolicyInForce,
    /// The policy of the concurrency limit: how many requests run at once.
    pub concurrency_policy: PolicyInForce,
    /// The number of lines of the access log that could not be written.
    pub access_log_dropped: u64,
    /// The classes, in the order of the configuration file.
    pub classes: Vec<ClassStatus>,
    /// Why decisions of operators could not be written to disk, if they could not. They hold until
    /// the process ends, and writing is retried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unwritten: Option<String>,
    /// Why the last reload was refused, if it was. The configuration before it is in force.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reload_refused: Option<String>,
    /// Revisions, which tell a client when there is something new to read.
    pub revisions: Revisions,
}

/// The cookie that identifies sessions. `answered` and `carried` are of the last 1000 to 2000
/// answered requests, or of all since the cookie was configured or picked if they are fewer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SessionCookieStatus {
    /// The value of `identify.session`: `cookie:NAME` or `auto`.
    pub source: String,
    /// The cookie's name; `null` while `auto` has picked none.
    pub name: Option<String>,
    /// The number of recent requests that the application answered.
    pub answered: u64,
    /// The number of those that carried the cookie.
    pub carried: u64,
    /// The cookies that responses have set, the most recent last; at most 16. They are watched as
    /// long as fewer than one of 100 requests carries the cookie.
    pub set: Vec<CookieStatus>,
    /// Why sessions are unknown, if they are.
    pub warning: Option<String>,
}

/// A cookie that responses of the application have set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CookieStatus {
    /// The cookie's name.
    pub name: String,
    /// Whether it is `HttpOnly`: scripts of the page cannot read it.
    pub http_only: bool,
    /// The number of responses that set it.
    pub answers: u64,
    /// The number of responses that deleted it.
    pub deletions: u64,
    /// The number of answered requests that carried it.
    pub requests: u64,
}

/// The memory budget.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MemoryStatus {
    /// The bytes in use.
    pub used: u64,
    /// The budget in bytes: `client_limits.memory`.
    pub budget: u64,
    /// The level of memory pressure: `calm`, `shrink`, `close` or `refuse`.
    pub level: String,
}

/// Numbers that change when there is something new under `/v1/elephants`, `/v1/policy` or
/// `/v1/audit`. Compare them for equality only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Revisions {
    /// The revision of the elephants and the decisions about them.
    pub elephants: u64,
    /// The revision of the policy in force and its overrides.
    pub policy: u64,
    /// The revision of the audit log.
    pub audit: u64,
}

/// A server of the upstream.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ServerStatus {
    /// The server's address.
    pub server: String,
    /// The state: `up`, `slow_start`, `probation`, `ejected` or `down`.
    pub state: String,
    /// The number of requests that it works on.
    pub running: u32,
    /// The number of consecutive failures.
    pub failures: u32,
    /// The number of requests for which no connection could be opened.
    pub connect_failures: u64,
    /// The number of requests that got no complete response.
    pub response_failures: u64,
}

/// A policy with its parameters, as the catalogue names them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PolicyInForce {
    /// The policy's name.
    pub name: String,
    /// The parameters: numbers, words, and durations as text.
    pub parameters: BTreeMap<String, Value>,
}

/// The state of a class.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClassStatus {
    /// The class's name.
    pub name: String,
    /// The tier: `transaction` or `browsing`.
    pub tier: String,
    /// The mode in force: `observe` or `enforce`.
    pub mode: String,
    /// The percentage of clients that the mode applies to. The others are only observed.
    pub enforce_percent: u8,
    /// The utility of a request.
    pub utility: f64,
    /// How long a client waits for a response that still counts as in time, if the file sets it.
    pub patience_ms: Option<u64>,
    /// How long a request may run at present; `null` if its requests are never stopped.
    pub may_run_ms: Option<u64>,
    /// The number of requests that wait.
    pub waiting: u32,
    /// The requests that ended, by outcome.
    pub outcomes: OutcomeCounts,
    /// The requests that ended, by what their session had proven. Bypassed requests are not
    /// counted.
    #[serde(default)]
    pub standings: StandingCounts,
    /// Why the class does not do what it is for, if that shows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warning: Option<String>,
}

/// The number of requests by what their session had proven.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StandingCounts {
    /// Transactions of sessions that were served a class that `requires` names.
    pub transaction: u64,
    /// Other requests of sessions that were served before.
    pub in_progress: u64,
    /// Requests of sessions that are not known.
    pub new: u64,
}
