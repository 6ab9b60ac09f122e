//! The reasons why a decision is rejected, and the maximum number of decisions.

use crate::decision_meta::DecisionMetaError;

/// The maximum number of rules in force. Each request is matched against all of them.
pub const MOST_RULES: usize = 64;
/// The maximum number of elephants that are remembered.
pub const MOST_ENTRIES: usize = 256;

/// The reason why an operator's decision was rejected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// No elephant has this number.
    #[error("there is no elephant {0}: `bywash elephants list` lists them all")]
    Unknown(u32),
    /// The author, the reason or the duration is invalid.
    #[error(transparent)]
    DecisionMeta(#[from] DecisionMetaError),
    /// Some of the requests are transactions, which no rule may hold back.
    #[error("some of these requests are transactions, which no rule may hold back")]
    Transacts,
    /// The limits of the rule are invalid, for this reason.
    #[error("{0}")]
    RuleLimits(&'static str),
    /// The pattern of the requests, from another gateway, cannot be read.
    #[error("the pattern of the requests cannot be read")]
    Pattern,
    /// The duration of the trial is too long.
    #[error("a trial lasts 10s to 10m: approve the rule if it is to hold for longer")]
    Trial,
    /// The maximum number of rules is in force.
    #[error("{MOST_RULES} rules are in force, and there can be no more: undo one first")]
    Many,
    /// The rule is in the configuration file, and only that file can change it.
    #[error("this rule is in the configuration file: change it there, and reload")]
    InFile,
    /// The revision has changed: another decision came first.
    #[error(
        "another operator has decided meanwhile (revision {is}, you have seen {seen}): look again"
    )]
    Conflict {
        /// The current revision of the elephant.
        is: u64,
        /// The revision that the operator has seen.
        seen: u64,
    },
    /// The maximum number of elephants is remembered, each with a decision in force.
    #[error(
        "{MOST_ENTRIES} elephants are remembered, each with a decision in force: undo one first"
    )]
    Full,
    /// No decision about this elephant is in force that could be undone.
    #[error("elephant {0} has no decision in force that could be undone")]
    Nothing(u32),
}
