//! Tests of an upstream that asks for our certificate.

use std::sync::Arc;

use bywash_tls::{ClientOptions, TlsError, advice, client};
use rustls::crypto::ring;
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, version};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::AsyncReadExt;
use tokio_rustls::TlsAcceptor;

use crate::authority::{Authority, leaf};
use crate::meeting::{Meeting, meet_acceptor};

/// Returns a rustls server that stands for an upstream, and admits only clients with a certificate
/// of the authority.
fn asking(
    authority: &Authority,
    version: &'static rustls::SupportedProtocolVersion,
) -> TlsAcceptor {
    let pair = authority.issue("upstream", &["a.test"]);
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(&authority.file).unwrap()).unwrap();
    let ring = Arc::new(ring::default_provider());
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&ring));
    let config = ServerConfig::builder_with_provider(ring)
        .with_protocol_versions(&[version])
        .unwrap()
        .with_client_cert_verifier(verifier.build().unwrap())
        .with_single_cert(vec![leaf(&pair)], PrivateKeyDer::from_pem_file(&pair.key).unwrap())
        .unwrap();
    TlsAcceptor::from(Arc::new(config))
}

/// Returns the error of a rejected client. It comes from the handshake, or in TLS 1.3 from the
/// first read.
async fn refusal(meeting: Meeting<std::io::Error>) -> std::io::Error {
    assert!(meeting.server.is_err(), "the upstream must refuse");
    match meeting.client {
        Err(error) => error,
        Ok(mut stream) => stream.read_u8().await.unwrap_err(),
    }
}

#[tokio::test]
async fn our_certificate_is_shown_and_accepted() {
    for version in [&version::TLS12, &version::TLS13] {
        let authority = Authority::new();
        let ours = authority.issue("gateway", &["gateway.test"]);
        let certificate = Some((ours.chain.clone(), ours.key.clone()));
        let connector = client(ClientOptions { certificate, ..authority.trusted() }).unwrap();
        let met = meet_acceptor(&connector, "a.test", &asking(&authority, version)).await;
        let server = met.server.unwrap();
        let shown = server.get_ref().1.peer_certificates().unwrap()[0].clone().into_owned();
        assert_eq!(shown, leaf(&ours));
        met.client.unwrap();
    }
}

#[tokio::test]
async fn without_a_certificate_we_are_refused() {
    for version in [&version::TLS12, &version::TLS13] {
        let authority = Authority::new();
        let asking = asking(&authority, version);
        let error = refusal(meet_acceptor(&authority.client(), "a.test", &asking).await).await;
        let advice = advice(&error).unwrap_or_else(|| panic!("no advice for {error}"));
        assert!(advice.contains("client certificate"), "{advice}");
    }
}

#[tokio::test]
async fn with_a_certificate_of_another_authority_we_are_refused() {
    for version in [&version::TLS12, &version::TLS13] {
        let (authority, other) = (Authority::new(), Authority::new());
        let ours = other.issue("gateway", &["gateway.test"]);
        let certificate = Some((ours.chain, ours.key));
        let connector = client(ClientOptions { certificate, ..authority.trusted() }).unwrap();
        let met = meet_acceptor(&connector, "a.test", &asking(&authority, version)).await;
        let error = refusal(met).await;
        let advice = advice(&error).unwrap_or_else(|| panic!("no advice for {error}"));
        assert!(advice.contains("another one"), "{advice}");
    }
}

#[test]
fn a_certificate_of_ours_with_another_key_is_refused_when_it_is_read() {
    let authority = Authority::new();
    let [a, b] = ["a", "b"].map(|file| authority.issue(file, &["a.test"]));
    let certificate = Some((a.chain, b.key));
    let refused = client(ClientOptions { certificate, ..authority.trusted() });
    assert!(matches!(refused, Err(TlsError::KeyMismatch { .. })));
}
