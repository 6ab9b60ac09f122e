//! A line of the audit log: the decision, its author, its reason and its end.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::mode::Mode;
use crate::rule_limits::RuleLimits;

/// A decision, or an event.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Note {
    /// When it happened.
    pub at: Timestamp,
    /// The subject of the decision.
    #[serde(flatten)]
    pub subject: Subject,
    /// The event.
    pub what: What,
    /// The author: `bywash` if a time has ended, `the file` for the content of the configuration
    /// file.
    pub by: String,
    /// The reason.
    pub why: String,
    /// The limits of the rule from now on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<RuleLimits>,
    /// When the decision ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    /// Why the decision could not be written to disk at once. Until it is, it holds only until the
    /// process ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unwritten: Option<String>,
}

/// The subject of a decision.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "of", rename_all = "snake_case")]
pub enum Subject {
    /// Requests that cause the load.
    Elephant {
        /// The elephant's number.
        number: u32,
        /// The pattern that its requests match.
        pattern: String,
    },
    /// The mode of a class.
    Class {
        /// The class's name.
        class: String,
        /// The mode that the override sets.
        mode: Mode,
        /// The percentage of clients that the override applies to.
        enforce_percent: u8,
    },
    /// The bypass, during which the gateway takes no decisions.
    Bypass,
    /// The configuration file.
    File,
}

/// The kind of event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum What {
    /// An elephant was found.
    Proposed,
    /// An operator asked for the effect of a rule although no elephant was found.
    Asked,
    /// A rule began.
    Approved,
    /// A trial of a rule began.
    Tried,
    /// A proposal was rejected: the elephant is not held back.
    Rejected,
    /// A setting of the file was overridden.
    Overridden,
    /// A decision was undone.
    Undone,
    /// The time of a decision ended.
    Ended,
    /// The configuration file was reloaded and is in force.
    Reloaded,
}
