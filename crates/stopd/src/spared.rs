//! The reasons why a statement of a stopped request is not cancelled.

use serde::Serialize;

/// The reason why a statement of a stopped request was not cancelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Spared {
    /// The statement may write, and the operator does not allow cancelling writes.
    Writes,
    /// The statement belongs to a database user other than the configured one.
    OtherUser,
    /// The statement may or may not work for the request. Its query tag contradicts the lease, or
    /// there is no lease and the database cannot distinguish statements.
    Unsure,
    /// The statement had ended, or its connection was released.
    Gone,
    /// The daemon lacks the privilege to cancel the statement.
    Refused,
    /// There were too many stops, or the stop came too late to search for the statement.
    Late,
    /// The database was unreachable.
    Down,
}

impl Spared {
    pub(crate) const ALL: [Self; 7] = [
        Self::Writes,
        Self::OtherUser,
        Self::Unsure,
        Self::Gone,
        Self::Refused,
        Self::Late,
        Self::Down,
    ];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Writes => "writes",
            Self::OtherUser => "other_user",
            Self::Unsure => "unsure",
            Self::Gone => "gone",
            Self::Refused => "refused",
            Self::Late => "late",
            Self::Down => "down",
        }
    }
}
