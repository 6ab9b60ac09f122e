//! The errors of a pool: why it cannot be built, or why a request does not run.

use bywash_engine::levels::GoalFault;

/// The reason for which a pool cannot be built.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// The settings of a level are invalid.
    #[error("level `{level}`: {fault}")]
    Level {
        /// The name of the level.
        level: String,
        /// The mistake in the settings.
        fault: GoalFault,
    },
    /// The settings of the pool as a whole are invalid.
    #[error("{0}")]
    Settings(GoalFault),
    /// A level has the empty name.
    #[error("the name of a level is empty")]
    EmptyName,
    /// Two levels have the same name.
    #[error("level `{0}` stands twice")]
    Twice(String),
    /// The goal names a level that does not exist.
    #[error("the goal names level `{name}`; there is {there_is}")]
    Unknown {
        /// The name that the goal has for the level.
        name: String,
        /// The names of the existing levels.
        there_is: String,
    },
    /// The pool has both parity and a goal. Parity does not control slots, so it cannot keep a
    /// goal.
    #[error("a pool in parity keeps no goal: leave one of the two out")]
    Parity,
    /// A number is so large that it must be a mistake. The values are that number and the maximum.
    #[error(
        "{0} is too many: a pool has at most {1} threads, places and levels, and a level as many threads"
    )]
    TooMany(u32, u32),
    /// The operating system could not start a thread.
    #[error("cannot start a thread: {0}")]
    Thread(#[from] std::io::Error),
}

/// The reason for which a request was refused. No part of it has run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// The level does not exist in the pool.
    #[error("there is no level `{name}`; there is {there_is}")]
    Unknown {
        /// The name that was given, cut to 64 characters.
        name: String,
        /// The names of the existing levels.
        there_is: String,
    },
    /// The queue of the level is full.
    #[error("the queue of level `{0}` is full")]
    Full(String),
    /// The request did not get a slot within this time: its patience.
    #[error("no turn came within {0:?}")]
    TimedOut(std::time::Duration),
    /// The pool was closed.
    #[error("the pool is shut down")]
    Closed,
}
