//! The errors of starting a gateway and of reloading its configuration.

use std::io;
use std::path::PathBuf;

use bywash_engine::ClassSet;

/// Why a gateway did not start, or did not take a new configuration.
#[derive(Debug, thiserror::Error)]
pub enum GatewayError {
    /// An address could not be listened on.
    #[error("cannot listen on {address} ({what}): {source}")]
    Listen {
        /// The key: `listen.http`, `listen.https` or `listen.admin`.
        what: &'static str,
        /// The address or path.
        address: String,
        /// The system's error; most often the address is in use.
        source: io::Error,
    },
    /// The access log could not be opened.
    #[error("cannot open the access log {}: {source}", .path.display())]
    Log {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// Certificates cannot be used.
    #[error(transparent)]
    Tls(bywash_tls::TlsError),
    /// A key that only a restart can change.
    #[error("{0} can only be changed by a restart")]
    Fixed(&'static str),
    /// There have been too many classes.
    #[error(transparent)]
    Classes(#[from] TooManyClasses),
    /// The system could not create a thread, or a resource that a thread needs (most often file
    /// descriptors).
    #[error("cannot start a thread: {0}")]
    Thread(io::Error),
}

/// The process has seen more class names than there are class numbers.
#[derive(Debug, thiserror::Error)]
#[error(
    "too many classes: with those of earlier configurations there would be {0}, and at most {most} \
     are allowed; a restart forgets the earlier ones",
    most = ClassSet::MOST
)]
pub struct TooManyClasses(pub(crate) usize);
