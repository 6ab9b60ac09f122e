//! Why certificates cannot be used: which file, what is wrong, what to do.
//!
//! Read by an operator at the moment of a renewal or a start, so every kind names the file and
//! ends with the remedy. Several of them would otherwise be one "invalid PEM" of the library.

use std::io;
use std::path::PathBuf;

use rustls_pki_types::pem;

/// A configuration of TLS that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// There is nothing to serve.
    #[error("no certificate is configured: give a chain and its key")]
    NoPairs,
    /// The system does not hand out the file.
    #[error("cannot read {}: {source}; {}", path.display(), remedy(source))]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// No certificate or key is that large.
    #[error("{} is larger than 4 MiB: give a PEM file", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
    },
    /// Binary where text is expected.
    #[error(
        "{} is DER, not PEM: convert it with `openssl x509 -inform der` or `openssl pkey -inform \
         der`", path.display()
    )]
    Der {
        /// The file.
        path: PathBuf,
    },
    /// A section of the file does not end, or is no base64.
    #[error("{} is damaged: {reason}; copy it again from where it was issued", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What the reader met.
        reason: pem::Error,
    },
    /// A file with something else, or nothing, in it.
    #[error(
        "no certificate in {}: give the file with the lines BEGIN CERTIFICATE", path.display()
    )]
    NoCertificate {
        /// The file.
        path: PathBuf,
    },
    /// What is between the lines is no certificate that rustls takes.
    #[error(
        "certificate {place} of {} cannot be used: {reason}; have it issued anew as X.509 version 3",
        path.display()
    )]
    BadCertificate {
        /// The file.
        path: PathBuf,
        /// Which in the file; the first is 1.
        place: usize,
        /// What the reader met.
        reason: String,
    },
    /// A file with something else, or nothing, in it.
    #[error("no private key in {}: give the file with the line BEGIN PRIVATE KEY", path.display())]
    NoKey {
        /// The file.
        path: PathBuf,
    },
    /// A key that wants a passphrase.
    #[error(
        "the key in {} is encrypted, and nobody is there to type a passphrase: decrypt it with \
         `openssl pkey`, readable to the service only", path.display()
    )]
    KeyEncrypted {
        /// The file.
        path: PathBuf,
    },
    /// A key of a kind or size that is not supported.
    #[error(
        "the key in {} cannot be used: {reason}; RSA of 2048 to 8192 bits, ECDSA P-256 or P-384 \
         and Ed25519 can", path.display()
    )]
    BadKey {
        /// The file.
        path: PathBuf,
        /// What the library said.
        reason: String,
    },
    /// Each is fine, but they do not belong together.
    #[error(
        "the key in {} does not belong to the certificate in {}: after a renewal both change; \
         give the two that were made together", key.display(), chain.display()
    )]
    KeyMismatch {
        /// The certificate's file.
        chain: PathBuf,
        /// The key's file.
        key: PathBuf,
    },
    /// The key belongs to a later certificate of the file.
    #[error(
        "{} begins with the certificate of an authority: put number {place}, which the key in {} \
         belongs to, first", chain.display(), key.display()
    )]
    LeafNotFirst {
        /// The certificate's file.
        chain: PathBuf,
        /// The key's file.
        key: PathBuf,
        /// Where in the file the server's own certificate stands; the first is 1.
        place: usize,
    },
    /// The system trusts nobody that we could find.
    #[error(
        "the system has no trusted authorities ({reason}): install ca-certificates, or name the \
         upstream's authority in `ca`"
    )]
    NoRoots {
        /// What was tried.
        reason: String,
    },
    /// Neither a host name nor an address.
    #[error("{name:?} is no host name and no address: give what the upstream's certificate says")]
    BadName {
        /// As configured.
        name: String,
    },
    /// The system gives no random numbers, and without them there are no keys for tickets.
    #[error("no keys for session tickets: {reason}; check that the system has /dev/urandom")]
    NoTickets {
        /// What the library said.
        reason: String,
    },
}

fn remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::NotFound => "check the path",
        io::ErrorKind::PermissionDenied => "let the user of the service read it",
        io::ErrorKind::IsADirectory => "give the file in it",
        _ => "check the file and its file system",
    }
}
