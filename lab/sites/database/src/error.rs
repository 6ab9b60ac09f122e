//! The errors of a database that a worker must distinguish.

/// The reason why a statement has no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DbError {
    /// The statement was cancelled. The connection remains usable.
    #[error("the request was stopped in the database")]
    Cancelled,
    /// There is no connection to the database, or the connection broke.
    #[error("the database is not available: {0}")]
    Lost(String),
    /// The server sent nothing for longer than the time limit. The connection is not used again,
    /// and its statement may still run.
    #[error("the database is not available: it does not answer")]
    Silent,
    /// The stop daemon has a lease of another request for this connection, or is still cancelling a
    /// statement on it. The connection must not be used.
    #[error("the stop daemon has a lease of another request for the connection")]
    Taken,
    /// A row with the same key exists already.
    #[error("a row with this key exists already")]
    Duplicate,
    /// The database rejected the statement, or returned an unexpected result.
    #[error("the database failed: {0}")]
    Failed(String),
}

impl DbError {
    /// Returns whether the connection can no longer be used after this error.
    pub fn ends_connection(&self) -> bool {
        match self {
            Self::Lost(_) | Self::Silent | Self::Taken => true,
            Self::Cancelled | Self::Duplicate | Self::Failed(_) => false,
        }
    }

    /// Returns whether the error means that the database cannot be reached.
    pub fn is_unavailable(&self) -> bool {
        matches!(self, Self::Lost(_) | Self::Silent)
    }
}
