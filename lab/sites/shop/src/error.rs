//! Why a shop could not start, or its orders not be read.

use std::io;
use std::path::PathBuf;

use bywash_site::ListenError;

/// Everything that can go wrong outside a request. The message carries the cause.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ShopError {
    /// The address is taken, or the operating system gives no thread or event loop for it.
    #[error("{0}")]
    Listen(#[from] ListenError),
    /// The file cannot be opened, is no database, or SQLite failed on it.
    #[error("cannot use the database {}: {cause}", path.display())]
    Database {
        /// The file asked for.
        path: PathBuf,
        /// What SQLite says.
        cause: rusqlite::Error,
    },
    /// The file is a database, but not one whose tables this version knows.
    #[error(
        "the database {} has schema version {found}, but this shop needs {}",
        path.display(),
        expected
    )]
    Schema {
        /// The file asked for.
        path: PathBuf,
        /// The `user_version` it carries.
        found: i64,
        /// The `user_version` this shop writes.
        expected: i64,
    },
    /// A value outside its range.
    #[error("{0}")]
    Option(&'static str),
    /// The operating system gives no thread or random numbers.
    #[error("the operating system does not provide {what}: {cause}")]
    System {
        /// What was asked of it.
        what: &'static str,
        /// What it says.
        cause: io::Error,
    },
}

impl ShopError {
    /// For `map_err`: the operating system refused `what`.
    pub(crate) fn system(what: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |cause| Self::System { what, cause }
    }
}
