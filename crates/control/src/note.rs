//! A line of the audit log: what was decided, by whom, why, until when.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::grants::Grants;
use crate::overrides::Mode;

/// What was decided, or has happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Note {
    /// When.
    pub at: Timestamp,
    /// Of what.
    #[serde(flatten)]
    pub subject: Subject,
    /// What.
    pub what: What,
    /// By whom; `bywash` for what time has done, `the file` for what stands there.
    pub by: String,
    /// Why.
    pub why: String,
    /// What a rule grants from now on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grants: Option<Grants>,
    /// Until when.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    /// Why the decision could not be written down at once: it holds until the process ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unwritten: Option<String>,
}

/// What a decision is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "of", rename_all = "snake_case")]
pub enum Subject {
    /// Requests that cause the load.
    Elephant {
        /// The elephant's number.
        number: u32,
        /// Which requests.
        pattern: String,
    },
    /// How a class is treated.
    Class {
        /// Which.
        class: String,
        /// How it was to be treated instead of what the file says.
        mode: Mode,
        /// Of so many of a hundred visitors.
        percent: u8,
    },
    /// That nothing is decided.
    Bypass,
    /// The configuration file.
    File,
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum What {
    /// An elephant was found.
    Proposed,
    /// An operator asks what a rule would do, though none was found.
    Asked,
    /// A rule holds from now on.
    Approved,
    /// A rule holds for a while, to be measured.
    Tried,
    /// It is not to be held back.
    Rejected,
    /// Something holds from now on instead of what the file says.
    Overridden,
    /// What was decided does not hold any more.
    Undone,
    /// The time of what was decided is over.
    Ended,
    /// It was read again, and is in force.
    Reloaded,
}
