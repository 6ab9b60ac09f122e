//! Why there is no pool, and why a request gets no turn.

use bywash_engine::levels::GoalFault;

/// Why a pool cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// The settings of a level contradict themselves.
    #[error("level `{level}`: {fault}")]
    Level {
        /// Its name.
        level: String,
        /// What is wrong with it.
        fault: GoalFault,
    },
    /// The same, of none of its levels.
    #[error("{0}")]
    Settings(GoalFault),
    /// Two levels have one name.
    #[error("level `{0}` stands twice")]
    Twice(String),
    /// The goal names a level that there is not.
    #[error("the goal names level `{name}`; there is {there_is}")]
    Unknown {
        /// The name.
        name: String,
        /// The levels that there are.
        there_is: String,
    },
    /// A pool in which places are scarce controls nothing.
    #[error("a pool in parity keeps no goal: leave one of the two out")]
    Parity,
    /// A number that nobody means.
    #[error(
        "{0} is too many: a pool has at most {1} threads, places and levels, and a level as many threads"
    )]
    TooMany(u32, u32),
    /// The operating system gives no thread.
    #[error("cannot start a thread: {0}")]
    Thread(#[from] std::io::Error),
}

/// Why a request gets no turn. Nothing has been done for it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// There is no such level.
    #[error("there is no level `{name}`; there is {there_is}")]
    Unknown {
        /// The name, cut to 64 characters.
        name: String,
        /// The levels that there are.
        there_is: String,
    },
    /// As many of its level are waiting as may.
    #[error("the queue of level `{0}` is full")]
    Full(String),
    /// Its turn did not come in the time that it had.
    #[error("no turn came within {0:?}")]
    TimedOut(std::time::Duration),
    /// The pool was shut down.
    #[error("the pool is shut down")]
    Closed,
}
