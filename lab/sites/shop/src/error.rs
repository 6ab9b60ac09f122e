//! Errors of starting a shop and of reading its orders.

use std::io;
use std::path::PathBuf;

use bywash_site::ListenError;

/// An error outside of a request. Its message includes the cause.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ShopError {
    /// The address is taken, or the operating system provides no thread or event loop for it.
    #[error("{0}")]
    Listen(#[from] ListenError),
    /// The database file cannot be opened, is not a database, or SQLite failed on it.
    #[error("cannot use the database {}: {cause}", path.display())]
    Database {
        /// The path of the database file.
        path: PathBuf,
        /// SQLite's error.
        cause: rusqlite::Error,
    },
    /// The file is a database, but its tables are of another version.
    #[error(
        "the database {} has schema version {found}, but this shop needs {}",
        path.display(),
        expected
    )]
    Schema {
        /// The path of the database file.
        path: PathBuf,
        /// The schema version of the file (SQLite's `user_version`).
        found: i64,
        /// The schema version that this shop reads and writes.
        expected: i64,
    },
    /// The value of an option is outside its range.
    #[error("{0}")]
    Option(&'static str),
    /// The operating system provides no thread or random numbers.
    #[error("the operating system does not provide {what}: {cause}")]
    System {
        /// The missing resource.
        what: &'static str,
        /// The operating system's error.
        cause: io::Error,
    },
}

impl ShopError {
    /// Returns a function for `map_err` that reports `what` as not provided by the operating
    /// system.
    pub(crate) fn system(what: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |cause| Self::System { what, cause }
    }
}
