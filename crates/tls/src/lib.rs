//! TLS on both sides of the gateway: certificates by name towards clients, renewed while serving;
//! verified connections towards upstreams.
//!
//! rustls does the protocol (TLS 1.2, RFC 5246, and 1.3, RFC 8446) with ring's cryptography. What
//! is ours is what an operator touches: files that are read, checked and explained; the choice of
//! a certificate by SNI (RFC 6066 section 3); a reload that either takes everything or nothing.
//!
//! Where to look:
//! - `pem` reads files, `pair` makes a certificate and its key of two of them and checks that they
//!   belong together, `names` finds the certificate for a name.
//! - [`Served`] is the side towards clients, [`Connector`] the one towards upstreams.
//! - [`TlsError`] is what cannot be used, [`Warning`] what can but should not stay, [`HandshakeFailure`] why a client
//!   did not get in.
//!
//! What cannot be configured, on purpose: verification of an upstream is never off, early data
//! (0-RTT) is never accepted, since it can be replayed (RFC 8446 section 8), and protocols below
//! TLS 1.2 do not exist (RFC 8996).
#![forbid(unsafe_code)]

mod client;
mod error;
mod handshake;
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
pub use negotiated::Negotiated;
pub use server::{Served, server};
pub use warning::Warning;

/// The two files of one certificate. They may be the same file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pair {
    /// PEM: the certificate of the server first, then those that lead to its authority.
    pub chain: PathBuf,
    /// PEM: the private key, not encrypted.
    pub key: PathBuf,
}

/// When a certificate of the configuration ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expiry {
    /// The certificate's file.
    pub path: PathBuf,
    /// The last second in which it is valid, in seconds since 1970.
    pub not_after: u64,
}

/// Reads everything as [`server`] would and says what should be mended, without serving.
///
/// # Errors
/// The first thing because of which [`server`] and [`Served::reload`] would refuse.
pub fn check(pairs: &[Pair]) -> Result<Vec<Warning>, TlsError> {
    Ok(names::Names::load(pairs, UnixTime::now())?.1)
}

/// RFC 8446 and RFC 5246; what is older is broken (RFC 8996).
const VERSIONS: &[&SupportedProtocolVersion] = &[&version::TLS13, &version::TLS12];

/// Named, not taken from the process: a process-wide default would be whatever another crate
/// has installed.
fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}
