//! `/v1/status`: how the gateway stands.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// How a gateway stands. Counts are since the start of the process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Status {
    /// Of the program.
    pub version: String,
    /// `observe` or `enforce`, as the file says it of classes that say nothing; `bypass` while nothing is decided.
    pub mode: String,
    /// Number of the process.
    pub pid: u32,
    /// The beginning of the SHA-256 of the configuration file in force, in 16 hexadecimal digits: as
    /// `sha256sum FILE | cut -c1-16` prints it.
    pub config_hash: String,
    /// It is about to end.
    pub draining: bool,
    /// Since its start.
    pub uptime_ms: u64,
    /// Slots.
    pub limit: u32,
    /// Requests that have one.
    pub running: u32,
    /// Requests that wait for one.
    pub waiting: u32,
    /// Requests that do not wait yet, as their bodies are still read.
    #[serde(default)]
    pub uploads: u64,
    /// Running requests whose clients have gone while the application works on.
    #[serde(default)]
    pub departed: u64,
    /// Requests that wait under a rule for elephants.
    pub held: u32,
    /// How long the oldest has waited.
    pub oldest_wait_ms: u64,
    /// The newest goes first: it is overload.
    pub newest_first: bool,
    /// Of late; zero while it is unknown.
    pub mean_service_ms: f64,
    /// Sessions that are remembered.
    pub sessions: u32,
    /// The cookie that sessions are known by, and the cookies that the application sets. Missing where
    /// `identify.session` is `token` or `none`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_cookie: Option<SessionCookieStatus>,
    /// Open connections of clients.
    pub connections: u64,
    /// `WebSocket`s and event streams, counted apart from the limit.
    pub streams: u64,
    /// What clients make the gateway hold.
    pub memory: MemoryStatus,
    /// Of the upstream.
    pub servers: Vec<ServerStatus>,
    /// Which waiting request gets the next slot.
    pub policy: PolicyInForce,
    /// How many run at once.
    pub limit_policy: PolicyInForce,
    /// Lines of the access log that could not be written.
    pub access_log_dropped: u64,
    /// By class, in the order of the file.
    pub classes: Vec<ClassStatus>,
    /// Why what operators have decided could not be written down, if that is so: it holds until the process ends, and writing
    /// is tried again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unwritten: Option<String>,
    /// What changes: each number is another when there is something new to ask for.
    pub revisions: Revisions,
}

/// The cookie that sessions are known by. Counts are since the start, or since the cookie was configured or picked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SessionCookieStatus {
    /// `identify.session`: `cookie:NAME` or `auto`.
    pub source: String,
    /// The cookie's name; `null` while `auto` has picked none.
    pub name: Option<String>,
    /// Requests that the application answered.
    pub answered: u64,
    /// Those of them that had the cookie.
    pub carried: u64,
    /// The cookies that answers have set, the last set last; at most 16. They are watched as long as the cookie is not
    /// seen in at least one of 100 requests.
    pub set: Vec<CookieStatus>,
    /// Why sessions are unknown, if that is so.
    pub warning: Option<String>,
}

/// A cookie that answers of the application have set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CookieStatus {
    /// Its name.
    pub name: String,
    /// Scripts of the page cannot read it.
    pub http_only: bool,
    /// Times that an answer has set it.
    pub answers: u64,
    /// Times that an answer has deleted it.
    pub deletions: u64,
    /// Answered requests that had it.
    pub requests: u64,
}

/// The budget of memory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MemoryStatus {
    /// Bytes in use.
    pub used: u64,
    /// Bytes there may be: `limits.memory`.
    pub budget: u64,
    /// `calm`, `shrink`, `close` or `refuse`.
    pub level: String,
}

/// Numbers that are others when there is something new under `/v1/elephants`, `/v1/policy` and `/v1/audit`. They are not
/// to be compared but for being equal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Revisions {
    /// Of what was found and decided of elephants.
    pub elephants: u64,
    /// Of the policy in force and what overrides it.
    pub policy: u64,
    /// Of the audit log.
    pub audit: u64,
}

/// A server of the upstream.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ServerStatus {
    /// Its address.
    pub server: String,
    /// `up`, `down` and others in between.
    pub state: String,
    /// Requests that it works on.
    pub running: u32,
    /// One after the other, of late.
    pub failures: u32,
    /// No connection came about.
    pub connect_failures: u64,
    /// No whole answer came.
    pub response_failures: u64,
}

/// A policy with its parameters, as the catalogue names them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PolicyInForce {
    /// Its name.
    pub name: String,
    /// Numbers, words, spans as text.
    pub parameters: BTreeMap<String, Value>,
}

/// A class.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClassStatus {
    /// What it is called.
    pub name: String,
    /// `transact` or `browse`.
    pub tier: String,
    /// What is in force: `observe` or `enforce`.
    pub mode: String,
    /// Of a hundred visitors so many are treated by that; the others are only observed.
    pub percent: u8,
    /// Worth of a request.
    pub utility: f64,
    /// How long a client waits for an answer that is in time, if the file says so.
    pub patience_ms: Option<u64>,
    /// How long a request of it may run, as things are; `null` where none is stopped.
    pub may_run_ms: Option<u64>,
    /// Requests that wait.
    pub waiting: u32,
    /// Requests that ended.
    pub outcomes: OutcomeCounts,
}

/// Requests by what became of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OutcomeCounts {
    /// Answered in time.
    pub served: u64,
    /// Answered after their clients' patience.
    pub late: u64,
    /// Refused before they ran.
    pub shed: u64,
    /// Refused by an elephant's rule.
    pub throttled: u64,
    /// Waited longer than a request may.
    pub expired: u64,
    /// Stopped while they ran, for their age.
    pub terminated: u64,
    /// Their clients left.
    pub orphaned: u64,
    /// The upstream failed them.
    pub upstream_error: u64,
}
