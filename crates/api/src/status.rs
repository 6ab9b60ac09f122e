//! `/v1/status`: the state of the gateway.

use std::collections::BTreeMap;

use bywash_history::OutcomeCounts;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The state of the gateway. All totals count from the start of the process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Status {
    /// The version of the program.
    pub version: String,
    /// The mode of classes that set none: `observe` or `enforce`. It is `bypass` while the gateway
    /// takes no decisions.
    pub mode: String,
    /// The process ID.
    pub pid: u32,
    /// The first 16 hexadecimal digits of the SHA-256 of the configuration file in force, as
    /// `sha256sum FILE | cut -c1-16` prints them.
    pub config_hash: String,
    /// The gateway's name in its fleet; absent if it belongs to none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fleet: Option<String>,
    /// Whether the process is draining: it finishes its requests and then ends.
    pub draining: bool,
    /// The time since the process started, in milliseconds.
    pub uptime_ms: u64,
    /// The concurrency limit: the present number of slots.
    pub limit: u32,
    /// The number of requests that now hold a slot.
    pub running: u32,
    /// The number of requests that now wait for a slot.
    pub waiting: u32,
    /// The number of requests whose bodies are still being read, before they wait for a slot.
    #[serde(default)]
    pub uploads: u64,
    /// The number of running requests whose clients have left, while the application still works on
    /// them.
    #[serde(default)]
    pub departed: u64,
    /// The number of requests that now wait under the rule of an elephant.
    pub throttled_waiting: u32,
    /// How long the oldest waiting request has waited so far, in milliseconds.
    pub oldest_wait_ms: u64,
    /// Whether the newest waiting request is started first, because of overload.
    pub lifo: bool,
    /// The recent mean service time of a request, in milliseconds; zero while unknown.
    pub mean_service_ms: f64,
    /// The number of sessions that the gateway remembers at present.
    pub sessions: u32,
    /// The cookie that identifies sessions, and the cookies that the application sets. Absent if
    /// `identify.session` is `token` or `none`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_cookie: Option<SessionCookieStatus>,
    /// The number of client connections that are open.
    pub connections: u64,
    /// The number of `WebSocket`s and event streams that are open. They hold no slot of the
    /// concurrency limit.
    pub streams: u64,
    /// The memory that client connections and requests make the gateway hold.
    pub memory: MemoryStatus,
    /// The servers of the upstream.
    pub servers: Vec<ServerStatus>,
    /// The scheduling policy, which selects the waiting request that gets the next free slot.
    pub policy: PolicyInForce,
    /// The policy of the concurrency limit: how many requests may run at once.
    pub concurrency_policy: PolicyInForce,
    /// The total number of lines of the access log that could not be written.
    pub access_log_dropped: u64,
    /// The classes, in the order of the configuration file.
    pub classes: Vec<ClassStatus>,
    /// Why operators' decisions cannot be written to disk; absent if they can. Unwritten decisions
    /// hold until the process ends, and the gateway retries to write them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unwritten: Option<String>,
    /// Why the last reload of the configuration was refused; absent if it was not refused. The
    /// previous configuration stays in force.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reload_refused: Option<String>,
    /// The revisions of parts of the state. A client sees from a changed revision that there is
    /// something new to read.
    pub revisions: Revisions,
}

/// The state of the cookie that identifies sessions. `answered` and `carried` cover the last 1000
/// to 2000 answered requests. If fewer requests were answered since the cookie was configured or
/// picked, `answered` and `carried` cover those.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SessionCookieStatus {
    /// The value of `identify.session`: `cookie:NAME` or `auto`.
    pub source: String,
    /// The cookie's name; `null` while `auto` has picked none.
    pub name: Option<String>,
    /// The number of recent requests that the application answered, with or without the cookie.
    pub answered: u64,
    /// The number of requests in `answered` that carried the cookie.
    pub carried: u64,
    /// The cookies that recent responses have set, the most recent last, at most 16. The gateway
    /// records cookies only while fewer than 1 % of the requests carry the session cookie.
    pub set: Vec<CookieStatus>,
    /// Why sessions cannot be identified; `null` if they can.
    pub warning: Option<String>,
}

/// A cookie that responses of the application have set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CookieStatus {
    /// The cookie's name.
    pub name: String,
    /// Whether the cookie is `HttpOnly`: scripts of the page cannot read it.
    pub http_only: bool,
    /// The number of responses that set the cookie.
    pub answers: u64,
    /// The number of responses that deleted the cookie.
    pub deletions: u64,
    /// The number of answered requests that carried the cookie.
    pub requests: u64,
}

/// The memory that clients make the gateway hold, and its budget.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MemoryStatus {
    /// The number of bytes in use at present.
    pub used: u64,
    /// The budget in bytes, from `client_limits.memory`.
    pub budget: u64,
    /// The level of memory pressure, from low to high: `calm`, `shrink`, `close` or `refuse`.
    pub level: String,
}

/// Numbers that change when there is something new under `/v1/elephants`, `/v1/policy` or
/// `/v1/audit`. A client may only compare them for equality.
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
    /// The server's address, as in the configuration file.
    pub server: String,
    /// The state of the server: `up`, `slow_start`, `probation`, `ejected` or `down`.
    pub state: String,
    /// The number of requests that the server works on at present.
    pub running: u32,
    /// The number of failures since the server's last success.
    pub failures: u32,
    /// The total number of requests for which no connection to the server could be opened.
    pub connect_failures: u64,
    /// The total number of requests that got no complete response from the server.
    pub response_failures: u64,
}

/// A policy with its parameters, by the names in the catalogue of policies.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PolicyInForce {
    /// The policy's name.
    pub name: String,
    /// The parameters by name: numbers, words, and durations as text.
    pub parameters: BTreeMap<String, Value>,
}

/// The state of a class of requests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClassStatus {
    /// The class's name.
    pub name: String,
    /// The tier: `transaction` or `browsing`.
    pub tier: String,
    /// The mode in force: `observe` or `enforce`.
    pub mode: String,
    /// The percentage of clients to which the mode applies. The requests of all other clients are
    /// only observed.
    pub enforce_percent: u8,
    /// The utility of one request of the class.
    pub utility: f64,
    /// The time in milliseconds that a client waits for a response; a later one counts as `late`.
    /// `null` if the configuration file does not set it.
    pub patience_ms: Option<u64>,
    /// The present limit on the service time of a request, in milliseconds; `null` if running
    /// requests are never stopped.
    pub may_run_ms: Option<u64>,
    /// The number of requests of the class that now wait for a slot.
    pub waiting: u32,
    /// The total number of requests that ended, by outcome.
    pub outcomes: OutcomeCounts,
    /// The total number of requests that ended, by the standing of their session. Bypassed requests
    /// are not counted.
    #[serde(default)]
    pub standings: StandingCounts,
    /// A warning that the class appears to miss its purpose, with the reason; absent if the class
    /// does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warning: Option<String>,
}

/// The number of requests by standing: what their session had proven when they came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StandingCounts {
    /// Transactions of sessions that were already served a class named in `requires`.
    pub transaction: u64,
    /// Other requests of sessions that were already served.
    pub in_progress: u64,
    /// Requests of sessions that are unknown.
    pub new: u64,
}
