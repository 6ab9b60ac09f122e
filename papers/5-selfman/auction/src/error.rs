//! Why an auction could not start.

use std::io;

use bywash_database::DbError;
use bywash_site::ListenError;

/// Everything that can go wrong outside a request. The message carries the cause.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AuctionError {
    /// The address is taken, or the operating system gives no thread or event loop for it.
    #[error("{0}")]
    Listen(#[from] ListenError),
    /// A value outside its range.
    #[error("{0}")]
    Option(&'static str),
    /// The database cannot be reached, or there are other tables of these names in it.
    #[error("cannot use the database: {0}")]
    Database(String),
    /// Made by another version.
    #[error("the database has schema version {found}, but this auction needs {known}")]
    Version {
        /// The one it has.
        found: i64,
        /// The one that this program makes.
        known: i64,
    },
    /// Filled with something else.
    #[error(
        "the database has {found}, not {wanted}: use an empty database, or start with these numbers"
    )]
    Sizes {
        /// What there is.
        found: String,
        /// What was asked for.
        wanted: String,
    },
    /// The operating system gives no thread or file.
    #[error("the operating system does not provide {what}: {cause}")]
    System {
        /// What was asked of it.
        what: &'static str,
        /// What it says.
        cause: io::Error,
    },
}

impl AuctionError {
    /// For `map_err`: the operating system refused `what`.
    pub(crate) fn system(what: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |cause| Self::System { what, cause }
    }
}

impl From<DbError> for AuctionError {
    fn from(error: DbError) -> Self {
        Self::Database(error.to_string())
    }
}
