//! A line of the audit log: what was decided, by whom, why, until when.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::grants::Grants;

/// What happened to an elephant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Note {
    /// When.
    pub at: Timestamp,
    /// The elephant's number.
    pub number: u32,
    /// Which requests.
    pub pattern: String,
    /// What.
    pub what: What,
    /// By whom; `bywash` for what time or the file has done.
    pub by: String,
    /// Why.
    pub why: String,
    /// What holds from now on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grants: Option<Grants>,
    /// Until when.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum What {
    /// It was found.
    Proposed,
    /// A rule holds from now on.
    Approved,
    /// A rule holds for a while, to be measured.
    Tried,
    /// It is not to be held back.
    Rejected,
    /// What was decided does not hold any more.
    Undone,
    /// The time of a rule, a trial or a rejection is over.
    Ended,
}
