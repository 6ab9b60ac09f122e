//! The TLS side towards clients: one configuration for all connections, whose certificates can
//! change.
//!
//! A reload builds a new table of certificates from files that were all read and checked. It
//! replaces the old table in one step. A handshake takes the table once, so it sees the old or the
//! new one and never a mixture. Open connections are not affected. The lock is held for the copy of
//! a pointer, once per full handshake.

use std::sync::{Arc, PoisonError, RwLock};

use rustls::crypto::ring::Ticketer;
use rustls::server::{Acceptor, ClientHello, ResolvesServerCert, ServerSessionMemoryCache};
use rustls::sign::CertifiedKey;
use rustls::{ConfigBuilder, ServerConfig, WantsVerifier};
use rustls_pki_types::UnixTime;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::LazyConfigAcceptor;
use tokio_rustls::server::TlsStream;

use crate::names::Names;
use crate::{Expiry, HandshakeFailure, Pair, Protocols, TlsError, VERSIONS, provider};

/// The maximum number of TLS 1.2 sessions that are stored here, for clients without session
/// tickets. A further session evicts the oldest. Clients with tickets store their sessions
/// themselves, as all clients do in TLS 1.3.
const SESSIONS: usize = 1024;

/// TLS towards clients. It is cheap to clone, and a reload changes all clones.
#[derive(Clone, Debug)]
pub struct Served {
    config: Arc<ServerConfig>,
    certificates: Arc<Certificates>,
}

/// Serves the certificates of `pairs`, each for its own names, and the first one for all other
/// names as well. Offers HTTP/1.1, and HTTP/2 before it if `http2` is set.
///
/// # Errors
/// Returns the first fault, with its file. [`check`](crate::check) returns faults that do not
/// prevent serving.
pub fn server(pairs: &[Pair], http2: bool) -> Result<Served, TlsError> {
    let (names, _warnings) = Names::load(pairs, UnixTime::now())?;
    let certificates = Arc::new(Certificates(RwLock::new(Arc::new(names))));
    let mut config = builder()
        .with_no_client_auth()
        .with_cert_resolver(Arc::clone(&certificates) as Arc<dyn ResolvesServerCert>);
    config.alpn_protocols = Protocols::http(http2).names();
    // A resumed session needs no signature, which saves CPU time. The ticket keys are generated
    // here, change every six hours, and end with the process. So a stolen disk does not reveal
    // earlier traffic.
    config.ticketer =
        Ticketer::new().map_err(|error| TlsError::NoTickets { reason: error.to_string() })?;
    config.session_storage = ServerSessionMemoryCache::new(SESSIONS);
    // Early data are disabled, because an attacker can replay them (RFC 8446 section 8).
    config.max_early_data_size = 0;
    Ok(Served { config: Arc::new(config), certificates })
}

pub(crate) fn builder() -> ConfigBuilder<ServerConfig, WantsVerifier> {
    ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(VERSIONS)
        .expect("ring has cipher suites for both versions")
}

impl Served {
    /// Performs the handshake on an accepted connection. The caller must limit its time.
    ///
    /// # Errors
    /// Returns the reason why the handshake failed.
    pub async fn accept<S>(&self, stream: S) -> Result<TlsStream<S>, HandshakeFailure>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let start = LazyConfigAcceptor::new(Acceptor::default(), stream).await;
        let start = start.map_err(|error| HandshakeFailure::of(&error, true))?;
        let asked = start.client_hello().server_name().map(str::to_owned);
        let accepted = start.into_stream(Arc::clone(&self.config)).await;
        accepted.map_err(|error| {
            let knows_name = asked.is_none_or(|name| self.certificates.now().knows(&name));
            HandshakeFailure::of(&error, knows_name)
        })
    }

    /// Returns the time at which each served certificate expires.
    pub fn expiries(&self) -> Vec<Expiry> {
        self.certificates.now().expiries().to_vec()
    }

    /// Replaces the certificates from the next handshake on. Session tickets stay valid.
    ///
    /// # Errors
    /// Returns the first fault, with its file. The certificates are then unchanged.
    pub fn reload(&self, pairs: &[Pair]) -> Result<(), TlsError> {
        let (names, _warnings) = Names::load(pairs, UnixTime::now())?;
        *self.certificates.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(names);
        Ok(())
    }
}

#[derive(Debug)]
struct Certificates(RwLock<Arc<Names>>);

impl Certificates {
    fn now(&self) -> Arc<Names> {
        // A poisoned lock still holds a complete table, because tables are replaced in one step.
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }
}

impl ResolvesServerCert for Certificates {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.now().choose(hello.server_name(), hello.signature_schemes())
    }
}
