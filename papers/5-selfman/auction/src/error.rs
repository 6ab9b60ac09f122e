//! The errors with which an auction site fails to start.

use std::io;

use bywash_database::DbError;
use bywash_site::ListenError;

/// An error that is not the answer to a request. The message includes the cause.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AuctionError {
    /// The auction cannot listen: the address is in use, or the operating system provides no thread
    /// or event loop.
    #[error("{0}")]
    Listen(#[from] ListenError),
    /// An option is outside its range.
    #[error("{0}")]
    Option(&'static str),
    /// The database cannot be reached, or has other tables with the same names.
    #[error("cannot use the database: {0}")]
    Database(String),
    /// The database has another schema version than this program.
    #[error("the database has schema version {found}, but this auction needs {known}")]
    Version {
        /// The schema version of the database.
        found: i64,
        /// The schema version that this program needs.
        known: i64,
    },
    /// The database was filled with other sizes than the requested ones.
    #[error(
        "the database has {found}, not {wanted}: use an empty database, or start with these numbers"
    )]
    Sizes {
        /// The sizes with which the database was filled.
        found: String,
        /// The sizes of the tables that this program was started with.
        wanted: String,
    },
    /// The operating system provides no thread or file.
    #[error("the operating system does not provide {what}: {cause}")]
    System {
        /// The resource that was requested.
        what: &'static str,
        /// The error of the operating system.
        cause: io::Error,
    },
}

impl AuctionError {
    /// Returns a function for `map_err` that reports that the operating system did not provide
    /// `what`.
    pub(crate) fn system(what: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |cause| Self::System { what, cause }
    }
}

impl From<DbError> for AuctionError {
    fn from(error: DbError) -> Self {
        Self::Database(error.to_string())
    }
}
