//! `/v1/policy`, `/v1/bypass` and `/v1/audit`: what is in force, what overrides the file, and who has decided what.

use bywash_control::{Note, Override};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::status::PolicyInForce;

pub use bywash_control::Mode;

/// What is in force.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Policy {
    /// See `revisions` of `/v1/status`; what changes this one asks for it.
    pub revision: u64,
    /// The configuration file, if there is one.
    pub file: Option<String>,
    /// When that was read, in milliseconds since 1970.
    pub read_ms: u64,
    /// What the file says of classes that say nothing.
    pub mode: Mode,
    /// Nothing is decided.
    pub bypassed: bool,
    /// Which waiting request gets the next slot.
    pub order: PolicyInForce,
    /// How many run at once.
    pub limit: PolicyInForce,
    /// How long a request may run.
    pub terminate: PolicyInForce,
    /// By class, in the order of the file.
    pub classes: Vec<ClassPolicy>,
    /// What holds instead of what the file says.
    pub overrides: Vec<Override>,
    /// Overrides outlive the process.
    pub kept: bool,
    /// In the answer to a decision: what is to be said about it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<String>,
}

/// What is in force of a class.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClassPolicy {
    /// What it is called.
    pub name: String,
    /// `transact` or `browse`.
    pub tier: String,
    /// Which requests; none for `other`.
    pub matches: Vec<String>,
    /// Worth of a request.
    pub utility: f64,
    /// How long a client waits for an answer that is in time, if the file says so.
    pub patience_ms: Option<u64>,
    /// Its requests may be stopped while they run.
    pub stoppable: bool,
    /// What is in force.
    pub mode: Mode,
    /// Of so many of a hundred visitors.
    pub percent: u8,
    /// What the file says.
    pub file_mode: Mode,
    /// What the file says.
    pub file_percent: u8,
    /// Number of what overrides the file.
    pub overridden: Option<u32>,
}

/// A class is to be treated otherwise than the file says, for a while.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SetClass {
    /// Which.
    pub class: String,
    /// How.
    pub mode: Mode,
    /// Of so many of a hundred visitors, 100 if nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub percent: Option<u8>,
    /// Who. Whoever comes with a token is who that says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// Why.
    pub why: String,
    /// For how long. If nothing is said, an override of the class that holds keeps its end; else it is `1h`.
    #[serde(default, rename = "for", skip_serializing_if = "Option::is_none")]
    pub lasts: Option<String>,
    /// Of the policy, as whoever decides has seen it. If it is another by now, nothing is done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<u64>,
}

/// Nothing is decided for a while, or decisions are taken again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SetBypass {
    /// Whether nothing is decided.
    pub on: bool,
    /// Who. Whoever comes with a token is who that says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// Why.
    pub why: String,
    /// For how long. If nothing is said, a bypass that holds keeps its end; else it is `24h`.
    #[serde(default, rename = "for", skip_serializing_if = "Option::is_none")]
    pub lasts: Option<String>,
    /// As of a class.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<u64>,
}

/// What the file says is to hold again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Undo {
    /// Who. Whoever comes with a token is who that says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// Why.
    pub why: String,
    /// As of a class.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<u64>,
}

/// All that holds beside the file, as it would stand there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Exported {
    /// Lines with comments that say who decided, and why.
    pub toml: String,
}

/// The last decisions, the newest first.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Audit {
    /// See `revisions` of `/v1/status`.
    pub revision: u64,
    /// They are written down and outlive the process.
    pub kept: bool,
    /// The decisions.
    pub notes: Vec<Note>,
}
