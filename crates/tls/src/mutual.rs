//! The server side of mutual TLS: each client proves its identity with a certificate.
//!
//! The authorities of one file are trusted, and no public authority. The identity of a client is
//! the set of DNS names and URIs in its certificate (RFC 5280 section 4.2.1.6). The caller decides
//! which names may do what.

use std::io;
use std::path::Path;
use std::sync::Arc;

use rustls::RootCertStore;
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::sign::SingleCertAndKey;
use rustls_pki_types::{CertificateDer, UnixTime};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use webpki::EndEntityCert;

use crate::client::authorities;
use crate::server::builder;
use crate::{Pair, Protocols, TlsError, pair, provider};

/// Accepts connections of clients that have a certificate. It is cheap to clone.
#[derive(Clone)]
pub struct MutualAcceptor(TlsAcceptor);

impl std::fmt::Debug for MutualAcceptor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MutualAcceptor").finish_non_exhaustive()
    }
}

impl MutualAcceptor {
    /// Shows the certificate of `own` to clients, and requires from each client a certificate of an
    /// authority in the PEM file `ca`. Rejects clients that offer only other protocols than
    /// `protocols`. A client that offers none is accepted: see [`Negotiated`](crate::Negotiated).
    ///
    /// # Errors
    /// Returns the first fault, with its file.
    pub fn new(ca: &Path, own: &Pair, protocols: Protocols) -> Result<Self, TlsError> {
        let own = pair::load(own, UnixTime::now())?;
        let mut config = builder()
            .with_client_cert_verifier(verifier(authorities(ca)?))
            .with_cert_resolver(Arc::new(SingleCertAndKey::from(own.certified)));
        config.alpn_protocols = protocols.names();
        // A resumed session would not verify the client's certificate again.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        Ok(Self(TlsAcceptor::from(Arc::new(config))))
    }

    /// Performs the handshake on an accepted connection. Returns the encrypted connection, and the
    /// DNS names (in lower case) and URIs in the client's certificate. The caller must limit the
    /// time.
    ///
    /// # Errors
    /// Returns an error if the client has no valid certificate, or if the handshake fails for
    /// another reason.
    pub async fn accept<S>(&self, stream: S) -> io::Result<(TlsStream<S>, Vec<String>)>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let stream = self.0.accept(stream).await?;
        let leaf = stream.get_ref().1.peer_certificates().and_then(<[_]>::first);
        let names = leaf.map(names).unwrap_or_default();
        Ok((stream, names))
    }
}

fn verifier(roots: RootCertStore) -> Arc<dyn ClientCertVerifier> {
    WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider())
        .build()
        .expect("there is at least one authority, and there are no revocation lists")
}

fn names(leaf: &CertificateDer<'_>) -> Vec<String> {
    let leaf = EndEntityCert::try_from(leaf).expect("the handshake has verified the certificate");
    let dns = leaf.valid_dns_names().map(str::to_ascii_lowercase);
    // A text without a scheme could look like a DNS name.
    let uris = leaf.valid_uri_names().filter(|uri| uri.contains("://"));
    dns.chain(uris.map(str::to_owned)).collect()
}
