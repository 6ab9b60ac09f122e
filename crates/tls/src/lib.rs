//! TLS on both sides of the gateway: certificates by name towards clients, renewed while serving;
//! verified connections towards upstreams.
//!
//! rustls implements the protocol (TLS 1.2, RFC 5246, and 1.3, RFC 8446), with the cryptography of
//! ring. This crate adds what an operator needs. It reads, checks and explains files, and chooses a
//! certificate by SNI (RFC 6066 section 3). A reload takes either everything or nothing.
//!
//! Where to look:
//! - `pem` reads files. `pair` reads a certificate and its key, and checks that they belong
//!   together. `names` finds the certificate for a name.
//! - [`Served`] is the side towards clients, [`Connector`] the side towards upstreams.
//! - [`MutualAcceptor`] admits only clients with a certificate of a private authority, and returns
//!   their names.
//! - [`TlsError`] is a fault that prevents the use of a configuration. [`Warning`] is a fault that
//!   does not, but should be corrected. [`HandshakeFailure`] is the reason why a client was not let
//!   in.
//!
//! Some things cannot be configured, on purpose. The verification of an upstream cannot be switched
//! off. Early data (0-RTT) is never accepted, because it can be replayed (RFC 8446 section 8).
//! Protocols below TLS 1.2 are not supported (RFC 8996).
#![forbid(unsafe_code)]

mod client;
mod error;
mod handshake;
mod mutual;
mod names;
mod negotiated;
mod pair;
mod pem;
mod server;
mod warning;

use std::path::PathBuf;
use std::sync::Arc;

use rustls::crypto::CryptoProvider;
use rustls::crypto::ring;
use rustls::{SupportedProtocolVersion, version};
use rustls_pki_types::UnixTime;

pub use client::{ClientOptions, Connector, advice, client};
pub use error::TlsError;
pub use handshake::HandshakeFailure;
pub use mutual::MutualAcceptor;
pub use negotiated::{Negotiated, Protocols};
pub use server::{Served, server};
pub use warning::Warning;

/// The two files of one certificate: the chain and the key. Both may be the same file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pair {
    /// The certificates in PEM: the certificate of the server first, then those that lead to its
    /// authority.
    pub chain: PathBuf,
    /// The private key in PEM, not encrypted.
    pub key: PathBuf,
}

/// The time at which a certificate of the configuration expires.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expiry {
    /// The file of the certificate chain.
    pub path: PathBuf,
    /// The last second in which the certificate is valid, in seconds since 1970.
    pub not_after: u64,
}

/// Reads all files as [`server`] would, without serving. Returns the faults that do not prevent
/// serving but should be corrected.
///
/// # Errors
/// Returns the first fault that makes [`server`] and [`Served::reload`] fail.
pub fn check(pairs: &[Pair]) -> Result<Vec<Warning>, TlsError> {
    Ok(names::Names::load(pairs, UnixTime::now())?.1)
}

/// The supported TLS versions (RFC 8446 and RFC 5246). Older versions are insecure (RFC 8996).
const VERSIONS: &[&SupportedProtocolVersion] = &[&version::TLS13, &version::TLS12];

/// Returns the cryptographic provider. It is named here and not taken from the process, because any
/// other crate could set the process-wide default.
fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}
