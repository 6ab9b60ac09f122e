//! What a database can do wrong, as a worker must tell it apart.

/// Why there is no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DbError {
    /// Somebody cancelled the statement. The connection is as good as before.
    #[error("the request was stopped in the database")]
    Cancelled,
    /// There is no connection, or it broke.
    #[error("the database is not available: {0}")]
    Lost(String),
    /// Nothing came for too long. The connection is not used again; its statement may still run.
    #[error("the database is not available: it does not answer")]
    Silent,
    /// The stop daemon knows the connection as another's, or still cancels there: it is not to be used.
    #[error("the stop daemon has a lease of another request for the connection")]
    Taken,
    /// A row with this name is there already.
    #[error("a row with this key exists already")]
    Duplicate,
    /// It refused the statement, or answered with something else than was asked for.
    #[error("the database failed: {0}")]
    Failed(String),
}

impl DbError {
    /// Whether the connection is of no more use.
    pub fn ends_connection(&self) -> bool {
        match self {
            Self::Lost(_) | Self::Silent | Self::Taken => true,
            Self::Cancelled | Self::Duplicate | Self::Failed(_) => false,
        }
    }

    /// Whether there is no database.
    pub fn is_unavailable(&self) -> bool {
        matches!(self, Self::Lost(_) | Self::Silent)
    }
}
