//! Tests of the reasons why handshakes with clients fail.

use std::sync::Arc;

use bywash_tls::{HandshakeFailure, Served, client, server};
use rustls::crypto::ring;
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::ServerName;
use tokio::io::AsyncWriteExt;
use tokio_rustls::TlsConnector;

use crate::authority::Authority;
use crate::meeting::meet;

fn served(authority: &Authority) -> Served {
    server(&[authority.issue("a", &["a.test"])], true).unwrap()
}

/// Returns the failure of a client that sends these bytes and closes the connection.
async fn sends(bytes: &[u8]) -> HandshakeFailure {
    let (mut near, far) = tokio::io::duplex(1 << 16);
    near.write_all(bytes).await.unwrap();
    near.shutdown().await.unwrap();
    served(&Authority::new()).accept(far).await.expect_err("it is no handshake")
}

/// Returns a `ClientHello` of this version that offers one old cipher suite and these extensions.
fn hello(version: [u8; 2], extensions: &[u8]) -> Vec<u8> {
    let length = |length: usize| u16::try_from(length).unwrap().to_be_bytes();
    let mut body = version.to_vec();
    body.extend([7; 32]);
    // The bytes are: no session, one cipher suite, no compression.
    body.extend([0, 0, 2, 0, 0x2f, 1, 0]);
    if !extensions.is_empty() {
        body.extend(length(extensions.len()));
        body.extend(extensions);
    }
    let mut message = vec![0x16, 3, 1];
    message.extend(length(body.len() + 4));
    message.extend([1, 0]);
    message.extend(length(body.len()));
    message.extend(body);
    message
}

/// The extension `signature_algorithms` with `rsa_pkcs1_sha256`.
const SIGNATURES: [u8; 8] = [0, 13, 0, 4, 0, 2, 4, 1];

#[tokio::test]
async fn what_is_no_tls_is_told_apart_from_clients_that_leave() {
    assert_eq!(sends(b"GET / HTTP/1.1\r\n\r\n").await, HandshakeFailure::NotTls);
    assert_eq!(sends(b"").await, HandshakeFailure::Gone);
    assert_eq!(sends(&hello([3, 3], &SIGNATURES)[..20]).await, HandshakeFailure::Gone);
}

#[tokio::test]
async fn clients_older_than_tls_1_2_are_told_apart_from_those_with_other_suites() {
    for version in [[3, 0], [3, 1], [3, 2]] {
        // With and without the extension, which is part of TLS 1.2.
        assert_eq!(sends(&hello(version, &SIGNATURES)).await, HandshakeFailure::OldVersion);
        assert_eq!(sends(&hello(version, &[])).await, HandshakeFailure::OldVersion);
    }
    assert_eq!(sends(&hello([3, 3], &SIGNATURES)).await, HandshakeFailure::NothingInCommon);
}

#[tokio::test]
async fn a_message_that_breaks_the_protocol_is_another_failure() {
    let mut broken = hello([3, 3], &SIGNATURES);
    // The message becomes a `Finished`, which is never the first message of a client.
    broken[5] = 20;
    assert_eq!(sends(&broken).await, HandshakeFailure::Other);
}

#[tokio::test]
async fn a_client_that_refuses_the_certificate_is_told_apart_by_what_it_asked_for() {
    let (ours, theirs) = (Authority::new(), Authority::new());
    let refused = meet(&ours.client(), "a.test", &served(&theirs)).await.server;
    assert_eq!(refused.unwrap_err(), HandshakeFailure::CertificateRefused);
    let refused = meet(&ours.client(), "b.test", &served(&ours)).await.server;
    assert_eq!(refused.unwrap_err(), HandshakeFailure::UnknownName);
    // An address is not sent as a name (RFC 6066).
    let refused = meet(&ours.client(), "127.0.0.1", &served(&ours)).await.server;
    assert_eq!(refused.unwrap_err(), HandshakeFailure::CertificateRefused);
    let accepted = meet(&client(ours.trusted()).unwrap(), "a.test", &served(&ours)).await;
    assert!(accepted.server.is_ok());
}

#[tokio::test]
async fn a_client_of_another_protocol_has_nothing_in_common() {
    let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(RootCertStore::empty())
        .with_no_client_auth();
    config.alpn_protocols = vec![b"imap".to_vec()];
    let (near, far) = tokio::io::duplex(1 << 16);
    let host = ServerName::try_from("a.test").unwrap();
    let (connector, served) = (TlsConnector::from(Arc::new(config)), served(&Authority::new()));
    let (_, refused) = tokio::join!(connector.connect(host, near), served.accept(far));
    assert_eq!(refused.unwrap_err(), HandshakeFailure::NothingInCommon);
}
