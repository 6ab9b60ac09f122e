//! The reasons why certificates cannot be used, each with the file, the fault and the remedy.
//!
//! An operator reads these errors at a renewal or at a start. So each kind names the file and ends
//! with the remedy. For several of them, the library would only say "invalid PEM".

use std::io;
use std::path::PathBuf;

use rustls_pki_types::pem;

/// The reason why a TLS configuration cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// No certificate is configured.
    #[error("no certificate is configured: give a chain and its key")]
    NoPairs,
    /// The operating system cannot read the file.
    #[error("cannot read {}: {source}; {}", path.display(), remedy(source))]
    Unreadable {
        /// The file that cannot be read.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The file is larger than 4 MiB, and so larger than any certificate or key.
    #[error("{} is larger than 4 MiB: give a PEM file", path.display())]
    TooLarge {
        /// The file that is too large.
        path: PathBuf,
    },
    /// The file is binary (DER) where text (PEM) is expected.
    #[error(
        "{} is DER, not PEM: convert it with `openssl x509 -inform der` or `openssl pkey -inform \
         der`", path.display()
    )]
    Der {
        /// The file in DER.
        path: PathBuf,
    },
    /// A section of the file has no end, or is not base64.
    #[error("{} is damaged: {reason}; copy it again from where it was issued", path.display())]
    Damaged {
        /// The file that is damaged.
        path: PathBuf,
        /// The error of the PEM parser.
        reason: pem::Error,
    },
    /// The file contains no certificate.
    #[error(
        "no certificate in {}: give the file with the lines BEGIN CERTIFICATE", path.display()
    )]
    NoCertificate {
        /// The file without a certificate.
        path: PathBuf,
    },
    /// The section is not a certificate that rustls accepts.
    #[error(
        "certificate {place} of {} cannot be used: {reason}; have it reissued as X.509 version 3",
        path.display()
    )]
    BadCertificate {
        /// The file that contains the certificate.
        path: PathBuf,
        /// The number of the certificate in the file; the first is 1.
        place: usize,
        /// The error of the certificate parser.
        reason: String,
    },
    /// The file contains no private key.
    #[error("no private key in {}: give the file with the line BEGIN PRIVATE KEY", path.display())]
    NoKey {
        /// The file without a private key.
        path: PathBuf,
    },
    /// The key is protected by a passphrase.
    #[error(
        "the key in {} is encrypted, and the gateway cannot ask for a passphrase: decrypt it with \
         `openssl pkey`, readable only by the service", path.display()
    )]
    KeyEncrypted {
        /// The file that contains the key.
        path: PathBuf,
    },
    /// The kind or the size of the key is not supported.
    #[error(
        "the key in {} cannot be used: {reason}; use RSA of 2048 to 8192 bits, ECDSA P-256 or \
         P-384, or Ed25519", path.display()
    )]
    BadKey {
        /// The file that contains the key.
        path: PathBuf,
        /// The error of the library.
        reason: String,
    },
    /// The key does not belong to the certificate, although both can be read.
    #[error(
        "the key in {} does not belong to the certificate in {}: after a renewal both change; \
         give the two that were made together", key.display(), chain.display()
    )]
    KeyMismatch {
        /// The file of the certificate chain.
        chain: PathBuf,
        /// The file of the key.
        key: PathBuf,
    },
    /// The key belongs to a later certificate of the file.
    #[error(
        "{} begins with the certificate of an authority: put number {place}, which the key in {} \
         belongs to, first", chain.display(), key.display()
    )]
    LeafNotFirst {
        /// The file of the certificate chain.
        chain: PathBuf,
        /// The file of the key.
        key: PathBuf,
        /// The number of the server's own certificate in the file; the first is 1.
        place: usize,
    },
    /// No trusted authority was found on the system.
    #[error(
        "the system has no trusted authorities ({reason}): install ca-certificates, or name the \
         upstream's authority in `ca`"
    )]
    NoRoots {
        /// The error of the search for trusted authorities.
        reason: String,
    },
    /// The name is neither a host name nor an address.
    #[error(
        "{name:?} is neither a host name nor an address: give a name of the upstream's certificate"
    )]
    BadName {
        /// The name in the configuration.
        name: String,
    },
    /// The system provides no random numbers, which the keys of session tickets need.
    #[error(
        "cannot make keys for session tickets: {reason}; check that the system has /dev/urandom"
    )]
    NoTickets {
        /// The error of the library.
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
