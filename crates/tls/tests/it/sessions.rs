//! Tests of session resumption, and of the ban on early data.

use std::sync::Arc;

use bywash_tls::{Served, server};
use rustls::client::{Resumption, Tls12Resumption};
use rustls::crypto::ring;
use rustls::{ClientConfig, HandshakeKind, RootCertStore, SupportedProtocolVersion, version};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, ServerName};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_rustls::TlsConnector;

use crate::authority::Authority;

fn config(
    authority: &Authority,
    version: &'static SupportedProtocolVersion,
    resumption: Resumption,
) -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(&authority.file).unwrap()).unwrap();
    let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_protocol_versions(&[version])
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.resumption = resumption;
    config.enable_early_data = true;
    Arc::new(config)
}

/// Makes a connection on which the server sends a byte. When the client has read the byte, it has
/// read its tickets too.
async fn visit(config: &Arc<ClientConfig>, host: &'static str, served: &Served) -> HandshakeKind {
    let (near, far) = tokio::io::duplex(1 << 16);
    let host = ServerName::try_from(host).unwrap();
    let connector = TlsConnector::from(Arc::clone(config));
    let (client, accepted) = tokio::join!(connector.connect(host, near), served.accept(far));
    let (mut client, mut accepted) = (client.unwrap(), accepted.unwrap());
    accepted.write_all(b"x").await.unwrap();
    accepted.flush().await.unwrap();
    client.read_exact(&mut [0]).await.unwrap();
    assert!(!client.get_ref().1.is_early_data_accepted());
    let kinds = [client.get_ref().1.handshake_kind(), accepted.get_ref().1.handshake_kind()];
    assert_eq!(kinds[0], kinds[1]);
    kinds[0].unwrap()
}

async fn twice(version: &'static SupportedProtocolVersion, resumption: Resumption) {
    let authority = Authority::new();
    let pair = authority.issue("a", &["a.test"]);
    let served = server(std::slice::from_ref(&pair), true).unwrap();
    let config = config(&authority, version, resumption);
    assert_eq!(visit(&config, "a.test", &served).await, HandshakeKind::Full);
    assert_eq!(visit(&config, "a.test", &served).await, HandshakeKind::Resumed);
    authority.issue("a", &["a.test"]);
    served.reload(&[pair]).unwrap();
    assert_eq!(visit(&config, "a.test", &served).await, HandshakeKind::Resumed, "after a reload");
}

fn by_id() -> Resumption {
    Resumption::in_memory_sessions(8).tls12_resumption(Tls12Resumption::SessionIdOnly)
}

#[tokio::test]
async fn a_session_of_tls_1_3_is_resumed() {
    twice(&version::TLS13, Resumption::in_memory_sessions(8)).await;
}

#[tokio::test]
async fn a_session_of_tls_1_2_is_resumed() {
    twice(&version::TLS12, Resumption::in_memory_sessions(8)).await;
}

#[tokio::test]
async fn a_session_of_a_client_without_tickets_is_resumed() {
    twice(&version::TLS12, by_id()).await;
}

/// Returns the kind of a client's second handshake, after handshakes of more other clients than the
/// number of sessions that the server stores.
async fn after_many_others(resumption: Resumption) -> HandshakeKind {
    let authority = Authority::new();
    let served = server(&[authority.issue("a", &["a.test"])], true).unwrap();
    let first = config(&authority, &version::TLS12, resumption);
    assert_eq!(visit(&first, "a.test", &served).await, HandshakeKind::Full);
    for _ in 0..1100 {
        let other = config(&authority, &version::TLS12, by_id());
        assert_eq!(visit(&other, "a.test", &served).await, HandshakeKind::Full);
    }
    visit(&first, "a.test", &served).await
}

#[tokio::test]
async fn a_client_with_a_ticket_is_never_forgotten() {
    let ticket = Resumption::in_memory_sessions(8);
    assert_eq!(after_many_others(ticket).await, HandshakeKind::Resumed);
}

#[tokio::test]
async fn the_memory_for_clients_without_tickets_is_bounded() {
    assert_eq!(after_many_others(by_id()).await, HandshakeKind::Full);
}

#[tokio::test]
async fn a_session_of_one_name_is_not_resumed_for_another() {
    let authority = Authority::new();
    let served = server(&[authority.issue("a", &["a.test", "b.test"])], true).unwrap();
    let config = config(&authority, &version::TLS13, Resumption::in_memory_sessions(8));
    assert_eq!(visit(&config, "a.test", &served).await, HandshakeKind::Full);
    assert_eq!(visit(&config, "b.test", &served).await, HandshakeKind::Full);
}
