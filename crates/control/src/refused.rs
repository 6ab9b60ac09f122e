//! Why a decision was rejected, and how many decisions there can be.

use crate::decision_meta::DecisionMetaError;

/// The number of rules that can be in force at once. Each request is matched against all of them.
pub const MOST_RULES: usize = 64;
/// The number of elephants that are remembered.
pub const MOST_ENTRIES: usize = 256;

/// Why a decision was rejected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// No elephant has this number.
    #[error("there is no elephant {0}: `bywash elephants list` lists them all")]
    Unknown(u32),
    /// The author, the reason or the duration is invalid.
    #[error(transparent)]
    DecisionMeta(#[from] DecisionMetaError),
    /// Some of the requests are transactions.
    #[error("some of these requests are transactions, which no rule may hold back")]
    Transacts,
    /// The limits make no sense.
    #[error("{0}")]
    RuleLimits(&'static str),
    /// The trial is too long.
    #[error("a trial lasts 10s to 10m: approve the rule if it is to hold for longer")]
    Trial,
    /// There are too many rules.
    #[error("{MOST_RULES} rules are in force, and there can be no more: undo one first")]
    Many,
    /// The rule is in the file, and only the file can change it.
    #[error("this rule is in the configuration file: change it there, and reload")]
    InFile,
    /// The revision has changed: another decision came first.
    #[error(
        "another operator has decided meanwhile (revision {is}, you have seen {seen}): look again"
    )]
    Conflict {
        /// The current revision.
        is: u64,
        /// The revision that the operator has seen.
        seen: u64,
    },
    /// There are too many decisions.
    #[error(
        "{MOST_ENTRIES} elephants are remembered, each with a decision in force: undo one first"
    )]
    Full,
    /// No decision is in force that could be undone.
    #[error("elephant {0} has no decision in force that could be undone")]
    Nothing(u32),
}
