//! Errors of starting an auction.

use std::io;

use bywash_database::DbError;
use bywash_site::ListenError;

/// An error outside a request. The message includes the cause.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AuctionError {
    /// The address is taken, or the operating system provides no thread or event loop for it.
    #[error("{0}")]
    Listen(#[from] ListenError),
    /// A value is outside its range.
    #[error("{0}")]
    Option(&'static str),
    /// The database cannot be reached, or has other tables with these names.
    #[error("cannot use the database: {0}")]
    Database(String),
    /// The database was created by another version.
    #[error("the database has schema version {found}, but this auction needs {known}")]
    Version {
        /// The version of the database.
        found: i64,
        /// The version that this program creates.
        known: i64,
    },
    /// The database was filled with other sizes.
    #[error(
        "the database has {found}, not {wanted}: use an empty database, or start with these numbers"
    )]
    Sizes {
        /// The sizes of the database.
        found: String,
        /// The requested sizes.
        wanted: String,
    },
    /// The operating system provides no thread or file.
    #[error("the operating system does not provide {what}: {cause}")]
    System {
        /// The missing resource.
        what: &'static str,
        /// The operating system's error.
        cause: io::Error,
    },
}

impl AuctionError {
    /// Returns a function for `map_err` that reports `what` as not provided by the operating
    /// system.
    pub(crate) fn system(what: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |cause| Self::System { what, cause }
    }
}

impl From<DbError> for AuctionError {
    fn from(error: DbError) -> Self {
        Self::Database(error.to_string())
    }
}
