//! A line of the audit log: the decision, its author, its reason and its end.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::mode::Mode;
use crate::rule_limits::RuleLimits;

/// A line of the audit log: a decision, or an event such as a reload.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Note {
    /// When the event happened.
    pub at: Timestamp,
    /// The subject of the event.
    #[serde(flatten)]
    pub subject: Subject,
    /// The kind of event.
    pub what: What,
    /// The author: an operator's name, `bywash` if a decision reached its end, or `the file` for
    /// the content of the configuration file.
    pub by: String,
    /// The reason for the decision.
    pub why: String,
    /// The limits of the rule from now on; absent if no rule begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<RuleLimits>,
    /// When the decision ends; absent if it has no end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    /// Why the decision could not be written to disk at once; absent if it was. An unwritten
    /// decision holds only until the process ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unwritten: Option<String>,
}

/// The subject of an event in the audit log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "of", rename_all = "snake_case")]
pub enum Subject {
    /// An elephant: requests that cause much of the load.
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
        /// The percentage of clients that the mode applies to.
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
    /// An operator named a route to see the effect of a rule for it, although bywash had not found
    /// it to be an elephant.
    Asked,
    /// A rule began.
    Approved,
    /// A trial of a rule began.
    Tried,
    /// A proposal was rejected: the elephant is not held back.
    Rejected,
    /// A setting of the configuration file was overridden.
    Overridden,
    /// A decision was undone.
    Undone,
    /// A decision reached its end.
    Ended,
    /// The configuration file was reloaded and is in force.
    Reloaded,
}
