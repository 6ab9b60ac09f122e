//! Why a store could not start.

use std::io;

use bywash_site::ListenError;

use crate::{DatabaseUrlError, SchemaError};

/// Everything that can go wrong outside a request. The message carries the cause.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BookstoreError {
    /// The address is taken, or the operating system gives no thread or event loop for it.
    #[error("{0}")]
    Listen(#[from] ListenError),
    /// The database is not there, or not of this store.
    #[error("{0}")]
    Schema(#[from] SchemaError),
    /// The database cannot be meant.
    #[error("{0}")]
    DatabaseUrl(#[from] DatabaseUrlError),
    /// A value outside its range.
    #[error("{0}")]
    Option(&'static str),
    /// The operating system gives no thread, file or random numbers.
    #[error("the operating system does not provide {what}: {cause}")]
    System {
        /// What was asked of it.
        what: &'static str,
        /// What it says.
        cause: io::Error,
    },
    /// A service did not answer while its cost was measured.
    #[error("{service} cannot be measured: {why}")]
    Calibrate {
        /// Which.
        service: &'static str,
        /// What the database said.
        why: String,
    },
}

impl BookstoreError {
    /// For `map_err`: the operating system refused `what`.
    pub(crate) fn system(what: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |cause| Self::System { what, cause }
    }
}
