//! The side towards clients: one configuration for all connections, certificates that change
//! under it.
//!
//! A reload makes the new table aside, from files that were all read and checked, and swaps it
//! for the old one in one step. A handshake takes the table once, so it sees the old or the new
//! one and never a mixture; connections that are open are not touched. The lock is held for the
//! copy of a pointer, once per full handshake.

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
use crate::negotiated::protocols;
use crate::{Expiry, HandshakeFailure, Pair, TlsError, VERSIONS, provider};

/// Sessions of TLS 1.2 that are remembered here, for clients that take no tickets; one more
/// forgets the oldest. With tickets, and so in TLS 1.3, clients keep their session themselves.
const SESSIONS: usize = 1024;

/// TLS towards clients. Cheap to clone; all clones are reloaded together.
#[derive(Clone, Debug)]
pub struct Served {
    config: Arc<ServerConfig>,
    certificates: Arc<Certificates>,
}

/// Serves `pairs`, each for the names in it, the first also for any other name; offers HTTP/2 if
/// `http2`, and always HTTP/1.1.
///
/// # Errors
/// The first thing that is wrong, with its file. What can be served but should be mended is said
/// by [`check`](crate::check).
pub fn server(pairs: &[Pair], http2: bool) -> Result<Served, TlsError> {
    let (names, _warnings) = Names::load(pairs, UnixTime::now())?;
    let certificates = Arc::new(Certificates(RwLock::new(Arc::new(names))));
    let mut config = builder()
        .with_no_client_auth()
        .with_cert_resolver(Arc::clone(&certificates) as Arc<dyn ResolvesServerCert>);
    config.alpn_protocols = protocols(http2);
    // A session resumed costs no signature. The keys are made here, change every six hours, and
    // are gone with the process: whoever steals the disk cannot read old traffic.
    config.ticketer =
        Ticketer::new().map_err(|error| TlsError::NoTickets { reason: error.to_string() })?;
    config.session_storage = ServerSessionMemoryCache::new(SESSIONS);
    // No early data: anybody can send it twice (RFC 8446 section 8).
    config.max_early_data_size = 0;
    Ok(Served { config: Arc::new(config), certificates })
}

fn builder() -> ConfigBuilder<ServerConfig, WantsVerifier> {
    ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(VERSIONS)
        .expect("ring has cipher suites for both versions")
}

impl Served {
    /// Makes a TLS stream of an accepted connection. It bounds no time: whoever awaits it does.
    ///
    /// # Errors
    /// When the handshake fails, and why.
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

    /// When each certificate that is served ends.
    pub fn expiries(&self) -> Vec<Expiry> {
        self.certificates.now().expiries().to_vec()
    }

    /// Serves other certificates from the next handshake on. Tickets stay valid.
    ///
    /// # Errors
    /// As [`server`]; then everything stays as it was.
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
        // Under a poisoned lock lies a whole table all the same: it is swapped in one step.
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }
}

impl ResolvesServerCert for Certificates {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.now().choose(hello.server_name(), hello.signature_schemes())
    }
}
