//! What a database can do wrong, as a worker must tell it apart.

/// Why there is no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Trouble {
    /// Somebody cancelled the statement. The connection is as good as before.
    #[error("the request was stopped in the database")]
    Cancelled,
    /// There is no connection, or it broke, or nothing came for too long. It is not used again.
    #[error("the database is not there: {0}")]
    Lost(String),
    /// It refused the statement, or answered with something else than was asked for.
    #[error("the database failed: {0}")]
    Failed(String),
}
