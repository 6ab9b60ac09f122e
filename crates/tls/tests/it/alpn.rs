//! Tests of the negotiated HTTP version.

use std::sync::Arc;

use bywash_tls::{ClientOptions, Negotiated, Protocols, client, server};
use rustls::crypto::ring;
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, ServerName};
use tokio_rustls::TlsConnector;

use crate::authority::Authority;
use crate::meeting::meet;

/// Returns, for the client and the server, whether it reports HTTP/2. The arguments say which side
/// offers HTTP/2.
async fn outcome(offered_by_client: bool, offered_by_server: bool) -> [bool; 2] {
    let authority = Authority::new();
    let served = server(&[authority.issue("a", &["a.test"])], offered_by_server).unwrap();
    let options =
        ClientOptions { protocols: Protocols::http(offered_by_client), ..authority.trusted() };
    let meeting = meet(&client(options).unwrap(), "a.test", &served).await;
    [meeting.client.unwrap().is_h2(), meeting.server.unwrap().is_h2()]
}

#[tokio::test]
async fn http_2_is_spoken_if_both_offer_it() {
    assert_eq!(outcome(true, true).await, [true, true]);
}

#[tokio::test]
async fn http_1_is_spoken_if_one_does_not() {
    assert_eq!(outcome(false, true).await, [false, false]);
    assert_eq!(outcome(true, false).await, [false, false]);
    assert_eq!(outcome(false, false).await, [false, false]);
}

#[tokio::test]
async fn a_client_that_names_nothing_speaks_http_1() {
    assert!(!raw(&[]).await.unwrap().is_h2());
}

#[tokio::test]
async fn a_client_that_names_only_something_else_is_refused() {
    let refusal = raw(&["imap"]).await.unwrap_err();
    assert!(refusal.to_string().contains("NoApplicationProtocol"), "{refusal}");
    let advice = bywash_tls::advice(&refusal).unwrap();
    assert!(advice.contains("HTTP versions"), "{advice}");
}

/// Connects rustls as a client that offers `protocols` to our server.
async fn raw(
    protocols: &[&str],
) -> std::io::Result<tokio_rustls::client::TlsStream<tokio::io::DuplexStream>> {
    let authority = Authority::new();
    let served = server(&[authority.issue("a", &["a.test"])], true).unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(&authority.file).unwrap()).unwrap();
    let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
    let connector = TlsConnector::from(Arc::new(config));
    let (near, far) = tokio::io::duplex(1 << 16);
    let host = ServerName::try_from("a.test").unwrap();
    tokio::join!(connector.connect(host, near), served.accept(far)).0
}
