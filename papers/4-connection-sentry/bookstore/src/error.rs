//! Errors of starting a store.

use std::io;

use bywash_site::ListenError;

use crate::{DatabaseUrlError, SchemaError};

/// An error outside a request. The message includes the cause.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BookstoreError {
    /// The address is taken, or the operating system provides no thread or event loop for it.
    #[error("{0}")]
    Listen(#[from] ListenError),
    /// The database is not available, or is not one of this store.
    #[error("{0}")]
    Schema(#[from] SchemaError),
    /// The address of the database is invalid.
    #[error("{0}")]
    DatabaseUrl(#[from] DatabaseUrlError),
    /// A value is outside its range.
    #[error("{0}")]
    Option(&'static str),
    /// The operating system provides no thread, file or random numbers.
    #[error("the operating system does not provide {what}: {cause}")]
    System {
        /// The missing resource.
        what: &'static str,
        /// The operating system's error.
        cause: io::Error,
    },
    /// A service did not answer while its cost was measured.
    #[error("{service} cannot be measured: {why}")]
    Calibrate {
        /// The service.
        service: &'static str,
        /// The database's error.
        why: String,
    },
}

impl BookstoreError {
    /// Returns a function for `map_err` that reports `what` as not provided by the operating
    /// system.
    pub(crate) fn system(what: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |cause| Self::System { what, cause }
    }
}
