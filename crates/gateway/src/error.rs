//! The errors of starting a gateway and of reloading its configuration.

use std::io;
use std::path::PathBuf;

use bywash_engine::ClassSet;

/// The reason why a gateway did not start, or did not take a new configuration.
#[derive(Debug, thiserror::Error)]
pub enum GatewayError {
    /// The gateway could not listen on an address.
    #[error("cannot listen on {address} ({what}): {source}")]
    Listen {
        /// The configuration key that names the address: `listen.http`, `listen.https` or
        /// `listen.admin`.
        what: &'static str,
        /// The address, or the path of the Unix socket.
        address: String,
        /// The error of the operating system. Its most frequent cause is that the address is in
        /// use.
        source: io::Error,
    },
    /// The access log could not be opened.
    #[error("cannot open the access log {}: {source}", .path.display())]
    Log {
        /// The path of the access log.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The certificates or keys for TLS could not be used.
    #[error(transparent)]
    Tls(bywash_tls::TlsError),
    /// The new configuration changes a key that only a restart can change. The field is the name of
    /// the key.
    #[error("{0} can only be changed by a restart")]
    Fixed(&'static str),
    /// The configuration has a fleet, and the program was built without the feature `fleet`.
    #[error("this program was built without [fleet]: build it with the feature `fleet`")]
    NoFleet,
    /// The process has seen more class names, over all configurations, than it can number.
    #[error(transparent)]
    Classes(#[from] TooManyClasses),
    /// The operating system could not create a thread, or a resource that a thread needs (most
    /// often a file descriptor).
    #[error("cannot start a thread: {0}")]
    Thread(io::Error),
}

/// The process has seen more class names, over all configurations, than there are class numbers.
/// The field is the number of names.
#[derive(Debug, thiserror::Error)]
#[error(
    "too many classes: with those of earlier configurations there would be {0}, and at most {most} \
     are allowed; a restart forgets the earlier ones",
    most = ClassSet::MOST
)]
pub struct TooManyClasses(pub(crate) usize);
