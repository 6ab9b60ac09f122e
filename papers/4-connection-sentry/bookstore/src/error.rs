//! The errors with which a store fails to start.

use std::io;

use bywash_site::ListenError;

use crate::{DatabaseUrlError, SchemaError};

/// An error that is not the answer to a request. The message includes the cause.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BookstoreError {
    /// The store cannot listen: the address is in use, or the operating system provides no thread
    /// or event loop.
    #[error("{0}")]
    Listen(#[from] ListenError),
    /// The database is not available, or its tables are not those of this store.
    #[error("{0}")]
    Schema(#[from] SchemaError),
    /// The address of the database cannot be parsed.
    #[error("{0}")]
    DatabaseUrl(#[from] DatabaseUrlError),
    /// An option is outside its range.
    #[error("{0}")]
    Option(&'static str),
    /// The operating system provides no thread, file or random numbers.
    #[error("the operating system does not provide {what}: {cause}")]
    System {
        /// The resource that was requested.
        what: &'static str,
        /// The error of the operating system.
        cause: io::Error,
    },
    /// A service failed while its cost was measured.
    #[error("{service} cannot be measured: {why}")]
    Calibrate {
        /// The name of the service.
        service: &'static str,
        /// The error of the database, or the reason why there was no answer.
        why: String,
    },
}

impl BookstoreError {
    /// Returns a function for `map_err` that reports that the operating system did not provide
    /// `what`.
    pub(crate) fn system(what: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |cause| Self::System { what, cause }
    }
}
