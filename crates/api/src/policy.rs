//! `/v1/policy`, `/v1/bypass` and `/v1/audit`: the policy in force, the overrides of the
//! configuration file, and the log of decisions.

use bywash_control::{Note, Override};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::status::PolicyInForce;

pub use bywash_control::Mode;

/// The policy in force.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Policy {
    /// The current revision of the policy, which a request to change it may name; see `revisions`
    /// of `/v1/status`.
    pub revision: u64,
    /// The path of the configuration file; `null` if there is none.
    pub file: Option<String>,
    /// When the configuration file was read, in milliseconds since 1970.
    pub read_ms: u64,
    /// The mode of the configuration file, for classes that set no mode of their own.
    pub mode: Mode,
    /// Whether the gateway is bypassed: it takes no decisions and works as a plain proxy.
    pub bypassed: bool,
    /// The scheduling policy, which selects the waiting request that gets the next free slot.
    pub scheduler: PolicyInForce,
    /// The policy of the concurrency limit: how many requests may run at once.
    pub concurrency: PolicyInForce,
    /// The termination policy: how long a request may run before it is stopped.
    pub terminate: PolicyInForce,
    /// The policy of each class, in the order of the configuration file.
    pub classes: Vec<ClassPolicy>,
    /// The overrides in force: settings that replace those of the configuration file for a limited
    /// time.
    pub overrides: Vec<Override>,
    /// Whether overrides survive a restart of the process.
    pub kept: bool,
    /// Remarks for the operator about the decision. Present only in the response to a decision.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<String>,
}

/// The policy in force for a class.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClassPolicy {
    /// The class's name.
    pub name: String,
    /// The tier: `transaction` or `browsing`.
    pub tier: String,
    /// The patterns that the class's requests match; none for the class `other`.
    pub matches: Vec<String>,
    /// The utility of one request of the class.
    pub utility: f64,
    /// The time in milliseconds that a client waits for a response; a later one counts as `late`.
    /// `null` if the configuration file does not set it.
    pub patience_ms: Option<u64>,
    /// Whether the class's requests may be stopped while they run.
    pub cancellable: bool,
    /// The mode in force, from the override if there is one.
    pub mode: Mode,
    /// The percentage of clients to which `mode` applies. The requests of all other clients are
    /// only observed.
    pub enforce_percent: u8,
    /// The mode of the class in the configuration file.
    pub file_mode: Mode,
    /// The percentage of clients to which `file_mode` applies, from the configuration file.
    pub file_enforce_percent: u8,
    /// The number of the override of this class; `null` if none is in force.
    pub overridden: Option<u32>,
}

/// A request to override the mode of a class for a limited time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SetClass {
    /// The class's name.
    pub class: String,
    /// The mode to set.
    pub mode: Mode,
    /// The percentage of clients to which the mode is to apply. The default is 100.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enforce_percent: Option<u8>,
    /// The name of the override's author. If the request has an operator token, the gateway takes
    /// the name from the token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// The reason for the override.
    pub why: String,
    /// How long the override holds, for example `1h`. If absent, it keeps the end of the class's
    /// present override, or holds for `1h` if there is none.
    #[serde(default, rename = "for", skip_serializing_if = "Option::is_none")]
    pub lasts: Option<String>,
    /// The revision of the policy that the operator has seen. If the policy has changed since, the
    /// override is rejected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<u64>,
}

/// A request to override the level of a population for a limited time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RankPopulation {
    /// The population's name: sixteen hexadecimal digits.
    pub population: String,
    /// The level to set: 0 is the best, 7 the worst.
    pub level: u8,
    /// The name of the override's author. If the request has an operator token, the gateway takes
    /// the name from the token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// The reason for the override.
    pub why: String,
    /// How long the override holds, for example `1h`. If absent, it keeps the end of the
    /// population's present override, or holds for `1h` if there is none.
    #[serde(default, rename = "for", skip_serializing_if = "Option::is_none")]
    pub lasts: Option<String>,
    /// The revision of the policy that the operator has seen. If the policy has changed since, the
    /// override is rejected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<u64>,
}

/// A request to bypass the gateway for a limited time, or to end the bypass.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SetBypass {
    /// Whether the gateway is to take no decisions.
    pub on: bool,
    /// The name of the decision's author. If the request has an operator token, the gateway takes
    /// the name from the token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// The reason for the decision.
    pub why: String,
    /// How long the bypass holds, for example `24h`. If absent, it keeps the end of the present
    /// bypass, or holds for `24h` if there is none.
    #[serde(default, rename = "for", skip_serializing_if = "Option::is_none")]
    pub lasts: Option<String>,
    /// The revision of the policy that the operator has seen. If the policy has changed since, the
    /// decision is rejected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<u64>,
}

/// A request to end an override, so that the setting of the configuration file is in force again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Undo {
    /// The name of the decision's author. If the request has an operator token, the gateway takes
    /// the name from the token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// The reason for the decision.
    pub why: String,
    /// The revision of the policy that the operator has seen. If the policy has changed since, the
    /// decision is rejected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<u64>,
}

/// The overrides and rules in force that are not in the configuration file, in the syntax of that
/// file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Exported {
    /// TOML, with comments that name the author and the reason of each decision.
    pub toml: String,
}

/// The most recent decisions of the audit log, the newest first.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Audit {
    /// The current revision of the audit log; see `revisions` of `/v1/status`.
    pub revision: u64,
    /// Whether decisions are written to disk, and so survive a restart of the process.
    pub kept: bool,
    /// The decisions, the newest first.
    pub notes: Vec<Note>,
}
