//! The reasons for which a pool cannot be built, or a request gets no turn.

use bywash_engine::levels::GoalFault;

/// The reason for which a pool cannot be built.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// The settings of a level contradict themselves.
    #[error("level `{level}`: {fault}")]
    Level {
        /// The name of the level.
        level: String,
        /// The contradiction.
        fault: GoalFault,
    },
    /// The settings of the pool contradict themselves.
    #[error("{0}")]
    Settings(GoalFault),
    /// Two levels have the same name.
    #[error("level `{0}` stands twice")]
    Twice(String),
    /// The goal names a level that does not exist.
    #[error("the goal names level `{name}`; there is {there_is}")]
    Unknown {
        /// The name in the goal.
        name: String,
        /// The existing levels.
        there_is: String,
    },
    /// A pool in parity cannot keep a goal, because it does not control the slots.
    #[error("a pool in parity keeps no goal: leave one of the two out")]
    Parity,
    /// A number is far larger than anyone can intend.
    #[error(
        "{0} is too many: a pool has at most {1} threads, places and levels, and a level as many threads"
    )]
    TooMany(u32, u32),
    /// The operating system could not start a thread.
    #[error("cannot start a thread: {0}")]
    Thread(#[from] std::io::Error),
}

/// The reason for which a request gets no turn. No part of it has run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// The level does not exist.
    #[error("there is no level `{name}`; there is {there_is}")]
    Unknown {
        /// The name, cut to 64 characters.
        name: String,
        /// The existing levels.
        there_is: String,
    },
    /// The queue of the level is full.
    #[error("the queue of level `{0}` is full")]
    Full(String),
    /// The turn of the request did not come within its patience.
    #[error("no turn came within {0:?}")]
    TimedOut(std::time::Duration),
    /// The pool was shut down.
    #[error("the pool is shut down")]
    Closed,
}
