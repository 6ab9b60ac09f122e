//! The errors with which an ad server fails to start.

use std::io;
use std::path::PathBuf;

use bywash_site::ListenError;

/// An error that is not the answer to a request. The message includes the cause.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AdServerError {
    /// The server cannot listen: the address is in use, or the operating system provides no thread
    /// or event loop.
    #[error("{0}")]
    Listen(#[from] ListenError),
    /// The database file cannot be opened or is not a database, or SQLite failed on it.
    #[error("cannot use the database {}: {cause}", path.display())]
    Database {
        /// The path of the database file.
        path: PathBuf,
        /// The error that SQLite returned.
        cause: rusqlite::Error,
    },
    /// The database has another schema version than this program.
    #[error(
        "the database {} has schema version {found}, but this ad server needs {}",
        path.display(),
        expected
    )]
    Schema {
        /// The path of the database file.
        path: PathBuf,
        /// The schema version of the file (`user_version`).
        found: i64,
        /// The schema version that this program needs.
        expected: i64,
    },
    /// The levels and their goal contradict each other, or there are no threads for the levels.
    #[error("cannot start the pool of threads: {0}")]
    Pool(#[from] bywash_levels::BuildError),
    /// The key file of the gateway in front cannot be read or is invalid.
    #[error("{0}")]
    LevelKeys(#[from] bywash_levels::GatewayError),
    /// An option is outside its range.
    #[error("{0}")]
    Option(&'static str),
    /// The operating system provides no thread or no random numbers.
    #[error("the operating system does not provide {what}: {cause}")]
    System {
        /// The resource that was requested.
        what: &'static str,
        /// The error of the operating system.
        cause: io::Error,
    },
}

impl AdServerError {
    /// Returns a function for `map_err` that reports that the operating system did not provide
    /// `what`.
    pub(crate) fn system(what: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |cause| Self::System { what, cause }
    }
}
