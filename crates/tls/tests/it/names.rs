//! Tests of the choice of a certificate by name.

use std::sync::Arc;

use bywash_tls::{Warning, check, server};
use rcgen::{PKCS_ECDSA_P256_SHA256, PKCS_ED25519};
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms, ring};
use rustls::{ClientConfig, RootCertStore, SignatureScheme};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, ServerName};
use tokio_rustls::TlsConnector;

use crate::authority::{Authority, leaf};
use crate::meeting::meet;

#[tokio::test]
async fn each_name_is_shown_its_own_certificate() {
    let authority = Authority::new();
    let [a, b] = ["a.test", "b.test"].map(|name| authority.issue(name, &[name]));
    let served = server(&[a.clone(), b.clone()], true).unwrap();
    let client = authority.client();
    assert_eq!(meet(&client, "a.test", &served).await.shown(), leaf(&a));
    assert_eq!(meet(&client, "b.test", &served).await.shown(), leaf(&b));
}

#[tokio::test]
async fn every_name_in_a_certificate_counts() {
    let authority = Authority::new();
    let first = authority.issue("first", &["a.test"]);
    let many = authority.issue("many", &["b.test", "c.test", "*.d.test"]);
    let served = server(&[first, many.clone()], true).unwrap();
    for host in ["b.test", "c.test", "www.d.test"] {
        assert_eq!(meet(&authority.client(), host, &served).await.shown(), leaf(&many), "{host}");
    }
}

#[tokio::test]
async fn letters_are_the_same_in_either_case() {
    let authority = Authority::new();
    let first = authority.issue("first", &["a.test"]);
    let loud = authority.issue("loud", &["B.TEST", "*.W.Test"]);
    let served = server(&[first, loud.clone()], true).unwrap();
    for host in ["b.test", "B.test", "x.w.TEST"] {
        assert_eq!(meet(&authority.client(), host, &served).await.shown(), leaf(&loud), "{host}");
    }
}

#[tokio::test]
async fn a_wildcard_stands_for_one_label_and_yields_to_the_exact_name() {
    let authority = Authority::new();
    let default = authority.issue("default", &["x.w.test", "deep.x.w.test", "w.test"]);
    let wild = authority.issue("wild", &["*.w.test"]);
    let served = server(&[default.clone(), wild.clone()], true).unwrap();
    let client = authority.client();
    assert_eq!(meet(&client, "y.w.test", &served).await.shown(), leaf(&wild));
    assert_eq!(meet(&client, "x.w.test", &served).await.shown(), leaf(&default));
    assert_eq!(meet(&client, "deep.x.w.test", &served).await.shown(), leaf(&default));
    assert_eq!(meet(&client, "w.test", &served).await.shown(), leaf(&default));
}

#[tokio::test]
async fn no_name_and_an_unknown_name_are_shown_the_first_certificate() {
    let authority = Authority::new();
    // A client that connects to an address sends no name (RFC 6066 section 3).
    let first = authority.issue("first", &["a.test", "127.0.0.1"]);
    let second = authority.issue("second", &["b.test", "127.0.0.1"]);
    let served = server(&[first.clone(), second], true).unwrap();
    let client = authority.client();
    assert_eq!(meet(&client, "127.0.0.1", &served).await.shown(), leaf(&first));
    let refusal = meet(&client, "c.test", &served).await.refusal().to_string();
    assert!(refusal.contains("a.test") && !refusal.contains("b.test"), "{refusal}");
}

#[tokio::test]
async fn two_kinds_of_key_for_one_name_are_chosen_by_what_the_client_verifies() {
    let authority = Authority::new();
    let names = ["a.test", "127.0.0.1"];
    let new = authority.issue_with("new", &names, &PKCS_ED25519);
    let old = authority.issue_with("old", &names, &PKCS_ECDSA_P256_SHA256);
    assert_eq!(check(&[new.clone(), old.clone()]).unwrap(), []);
    let served = server(&[new.clone(), old.clone()], true).unwrap();
    assert_eq!(meet(&authority.client(), "a.test", &served).await.shown(), leaf(&new));

    let connector = only_ecdsa(&authority);
    for host in names {
        let (near, far) = tokio::io::duplex(1 << 16);
        let name = ServerName::try_from(host).unwrap();
        let (client, _server) = tokio::join!(connector.connect(name, near), served.accept(far));
        let client = client.unwrap();
        let shown = client.get_ref().1.peer_certificates().unwrap()[0].clone().into_owned();
        assert_eq!(shown, leaf(&old), "{host}: by its name, and as the first certificate's");
    }
}

/// Returns a client that can verify ECDSA but not Ed25519, like most browsers.
fn only_ecdsa(authority: &Authority) -> TlsConnector {
    let ring = ring::default_provider();
    let all = ring.signature_verification_algorithms;
    let wanted = SignatureScheme::ECDSA_NISTP256_SHA256;
    let mapping: Vec<_> = all.mapping.iter().copied().filter(|(s, _)| *s == wanted).collect();
    let signature_verification_algorithms =
        WebPkiSupportedAlgorithms { all: all.all, mapping: Vec::leak(mapping) };
    let provider = CryptoProvider { signature_verification_algorithms, ..ring };
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(&authority.file).unwrap()).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(provider))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    TlsConnector::from(Arc::new(config))
}

#[test]
fn a_name_that_an_earlier_certificate_has_is_a_warning() {
    let authority = Authority::new();
    let first = authority.issue("first", &["a.test", "b.test"]);
    let second = authority.issue("second", &["b.test", "c.test"]);
    let path = second.chain.clone();
    let warnings = check(&[first, second]).unwrap();
    assert_eq!(warnings, [Warning::Shadowed { path, name: "b.test".into() }]);
}

#[test]
fn a_certificate_without_names_is_a_warning() {
    let authority = Authority::new();
    let pair = authority.issue("bare", &[]);
    let path = pair.chain.clone();
    assert_eq!(check(&[pair]).unwrap(), [Warning::NoNames { path }]);
}
