//! Why nothing was decided.

use crate::book::{MOST_ENTRIES, MOST_RULES};
use crate::word::WordError;

/// Why a decision was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// There is no elephant of that number.
    #[error("there is no elephant {0}: `bywash elephants list` has them all")]
    Unknown(u32),
    /// The word does not count.
    #[error(transparent)]
    Word(#[from] WordError),
    /// Some of its requests are transactions.
    #[error("some of these requests are transactions: what earns is not held back")]
    Transacts,
    /// The grants make no sense.
    #[error("{0}")]
    Grants(&'static str),
    /// A trial is short.
    #[error("a trial takes 10s to 10m: approve the rule if it is to hold for longer")]
    Trial,
    /// There are too many rules.
    #[error("{MOST_RULES} rules hold already: undo one first")]
    Many,
    /// The file says so, and only the file can say otherwise.
    #[error("this rule stands in the file: change it there, and reload")]
    InFile,
    /// Somebody else has decided meanwhile.
    #[error(
        "somebody else has decided meanwhile (revision {is}, you have seen {seen}): look again"
    )]
    Conflict {
        /// The one that there is.
        is: u64,
        /// The one that was seen.
        seen: u64,
    },
    /// There are too many decisions.
    #[error("{MOST_ENTRIES} elephants are remembered, and something holds of each: undo one first")]
    Full,
    /// Nothing was decided that could be undone.
    #[error("nothing holds of elephant {0} that could be undone")]
    Nothing(u32),
}
