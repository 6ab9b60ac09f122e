//! Errors of starting a shop and of reading its orders.

use std::io;
use std::path::PathBuf;

use bywash_site::ListenError;

/// An error outside a request. The message includes the cause.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ShopError {
    /// The address is taken, or the operating system provides no thread or event loop for it.
    #[error("{0}")]
    Listen(#[from] ListenError),
    /// The file cannot be opened, is not a database, or SQLite failed on it.
    #[error("cannot use the database {}: {cause}", path.display())]
    Database {
        /// The file of the database.
        path: PathBuf,
        /// SQLite's error.
        cause: rusqlite::Error,
    },
    /// The file is a database, but not one whose tables this version knows.
    #[error(
        "the database {} has schema version {found}, but this shop needs {}",
        path.display(),
        expected
    )]
    Schema {
        /// The file of the database.
        path: PathBuf,
        /// The `user_version` of the file.
        found: i64,
        /// The `user_version` that this shop writes.
        expected: i64,
    },
    /// A value is outside its range.
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
