//! The errors with which an ad server fails to start.

use std::io;
use std::path::PathBuf;

use bywash_site::ListenError;

/// An error outside a request. The message includes the cause.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AdServerError {
    /// The address is in use, or the operating system provides no thread or event loop for it.
    #[error("{0}")]
    Listen(#[from] ListenError),
    /// The file cannot be opened or is not a database, or SQLite failed on it.
    #[error("cannot use the database {}: {cause}", path.display())]
    Database {
        /// The path of the file.
        path: PathBuf,
        /// The error of SQLite.
        cause: rusqlite::Error,
    },
    /// The file is a database with tables that this version does not know.
    #[error(
        "the database {} has schema version {found}, but this ad server needs {}",
        path.display(),
        expected
    )]
    Schema {
        /// The path of the file.
        path: PathBuf,
        /// The `user_version` of the file.
        found: i64,
        /// The `user_version` that this version needs.
        expected: i64,
    },
    /// The levels and their goal contradict each other, or there are no threads for them.
    #[error("cannot start the pool of threads: {0}")]
    Pool(#[from] bywash_levels::BuildError),
    /// There are no readable keys of the gateway in front.
    #[error("{0}")]
    LevelKeys(#[from] bywash_levels::GatewayError),
    /// An option is outside its range.
    #[error("{0}")]
    Option(&'static str),
    /// The operating system provides no thread or no random numbers.
    #[error("the operating system does not provide {what}: {cause}")]
    System {
        /// The thing that was requested.
        what: &'static str,
        /// The error of the operating system.
        cause: io::Error,
    },
}

impl AdServerError {
    /// Returns a function for `map_err` that reports that the operating system refused `what`.
    pub(crate) fn system(what: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |cause| Self::System { what, cause }
    }
}
