//! Tests of the verification of an upstream.

use std::fs;

use bywash_tls::{ClientOptions, Negotiated, Pair, TlsError, advice, client, server};
use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::authority::{Authority, leaf};
use crate::meeting::meet;

#[tokio::test]
async fn bytes_go_both_ways_over_a_socket() {
    let authority = Authority::new();
    let served = server(&[authority.issue("a", &["a.test"])], true).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let upstream = tokio::spawn(async move {
        let (stream, _peer) = listener.accept().await.unwrap();
        let mut stream = served.accept(stream).await.unwrap();
        let mut read = vec![0; 100_000];
        stream.read_exact(&mut read).await.unwrap();
        stream.write_all(&read).await.unwrap();
        stream.shutdown().await.unwrap();
        stream.is_h2()
    });
    let stream = TcpStream::connect(address).await.unwrap();
    let stream = authority.client().connect("a.test", stream).await.unwrap();
    let sent: Vec<u8> = (0..100_000_u32).map(|i| i.to_le_bytes()[0]).collect();
    let (mut reading, mut writing) = tokio::io::split(stream);
    let mut echoed = Vec::new();
    let (written, read) = tokio::join!(
        async {
            writing.write_all(&sent).await?;
            writing.flush().await
        },
        reading.read_to_end(&mut echoed)
    );
    written.unwrap();
    read.unwrap();
    assert_eq!(echoed, sent);
    assert!(upstream.await.unwrap());
}

#[tokio::test]
async fn an_upstream_of_an_unknown_authority_is_refused() {
    let (ours, theirs) = (Authority::new(), Authority::new());
    let served = server(&[theirs.issue("a", &["a.test"])], true).unwrap();
    let meeting = meet(&ours.client(), "a.test", &served).await;
    assert!(meeting.refusal().to_string().contains("UnknownIssuer"), "{}", meeting.refusal());
    assert!(advice(meeting.refusal()).unwrap().contains("`ca`"));
    assert!(meeting.server.is_err(), "the upstream learns of it");
}

#[tokio::test]
async fn an_authority_with_the_right_name_and_another_key_is_refused() {
    let [ours, theirs] = [(), ()].map(|()| Authority::named(tempfile::tempdir().unwrap(), "same"));
    let served = server(&[theirs.issue("a", &["a.test"])], true).unwrap();
    let meeting = meet(&ours.client(), "a.test", &served).await;
    assert!(advice(meeting.refusal()).unwrap().contains("another key"), "{}", meeting.refusal());
}

#[tokio::test]
async fn with_an_authority_of_its_own_the_system_is_not_trusted_and_without_it_alone_is() {
    let authority = Authority::new();
    let served = server(&[authority.issue("a", &["a.test"])], true).unwrap();
    match client(ClientOptions { ca: None, ..authority.trusted() }) {
        Ok(system) => {
            let meeting = meet(&system, "a.test", &served).await;
            assert!(meeting.refusal().to_string().contains("UnknownIssuer"));
        }
        // This machine has no ca-certificates.
        Err(error) => assert!(matches!(error, TlsError::NoRoots { .. }), "{error}"),
    }
}

#[tokio::test]
async fn a_wrong_name_is_refused_and_another_can_be_given() {
    let authority = Authority::new();
    let pair = authority.issue("a", &["a.test"]);
    let served = server(std::slice::from_ref(&pair), true).unwrap();
    let meeting = meet(&authority.client(), "10.0.0.7", &served).await;
    assert!(meeting.refusal().to_string().contains("not valid for name"), "{}", meeting.refusal());
    assert!(advice(meeting.refusal()).unwrap().contains("`name`"));
    let options = ClientOptions { name: Some("a.test".into()), ..authority.trusted() };
    let meeting = meet(&client(options).unwrap(), "10.0.0.7", &served).await;
    assert_eq!(meeting.shown(), leaf(&pair));
    assert_eq!(meeting.server.unwrap().get_ref().1.server_name(), Some("a.test"), "as SNI");
}

#[tokio::test]
async fn an_address_is_verified_as_an_address() {
    let authority = Authority::new();
    let pair = authority.issue("a", &["::1", "127.0.0.1"]);
    let served = server(std::slice::from_ref(&pair), true).unwrap();
    for host in ["[::1]", "::1", "127.0.0.1"] {
        assert_eq!(meet(&authority.client(), host, &served).await.shown(), leaf(&pair), "{host}");
    }
    assert!(meet(&authority.client(), "127.0.0.2", &served).await.client.is_err());
}

#[tokio::test]
async fn a_host_that_is_none_is_refused_before_anything_is_sent() {
    let (near, far) = tokio::io::duplex(1 << 10);
    let authority = Authority::new();
    let refusal = authority.client().connect("a b", near).await.unwrap_err();
    assert_eq!(refusal.kind(), std::io::ErrorKind::InvalidInput);
    assert!(refusal.to_string().contains("a b"), "{refusal}");
    let mut sent = Vec::new();
    let mut far = far;
    far.read_to_end(&mut sent).await.unwrap();
    assert_eq!(sent, b"");
    let options = ClientOptions { name: Some("a b".into()), ..authority.trusted() };
    assert!(matches!(client(options), Err(TlsError::BadName { name }) if name == "a b"));
}

#[tokio::test]
async fn an_expired_upstream_is_refused() {
    let place = tempfile::tempdir().unwrap();
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(["a.test".to_owned()]).unwrap();
    params.not_after = rcgen::date_time_ymd(2020, 1, 1);
    let pair = self_signed(&place, &params, &key);
    let served = server(std::slice::from_ref(&pair), true).unwrap();
    let options = ClientOptions { ca: Some(pair.chain), ..ClientOptions::default() };
    let meeting = meet(&client(options).unwrap(), "a.test", &served).await;
    assert!(advice(meeting.refusal()).unwrap().contains("expired"), "{}", meeting.refusal());
}

#[tokio::test]
async fn a_self_signed_upstream_is_accepted_by_its_own_certificate_but_not_as_an_authority() {
    let place = tempfile::tempdir().unwrap();
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(["a.test".to_owned()]).unwrap();
    for is_ca in [IsCa::ExplicitNoCa, IsCa::Ca(BasicConstraints::Unconstrained)] {
        let accepted = is_ca == IsCa::ExplicitNoCa;
        params.is_ca = is_ca;
        let pair = self_signed(&place, &params, &key);
        let served = server(std::slice::from_ref(&pair), true).unwrap();
        let options = ClientOptions { ca: Some(pair.chain), ..ClientOptions::default() };
        let meeting = meet(&client(options).unwrap(), "a.test", &served).await;
        assert_eq!(meeting.client.is_ok(), accepted);
        if !accepted {
            assert!(advice(meeting.refusal()).unwrap().contains("CA:FALSE"));
        }
    }
}

fn self_signed(place: &tempfile::TempDir, params: &CertificateParams, key: &KeyPair) -> Pair {
    let pair = Pair { chain: place.path().join("a.pem"), key: place.path().join("a.key") };
    fs::write(&pair.chain, params.self_signed(key).unwrap().pem()).unwrap();
    fs::write(&pair.key, key.serialize_pem()).unwrap();
    pair
}

#[tokio::test]
async fn an_upstream_that_speaks_no_tls_is_an_error_with_advice() {
    let (near, mut far) = tokio::io::duplex(1 << 16);
    far.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await.unwrap();
    let refusal = Authority::new().client().connect("a.test", near).await.unwrap_err();
    assert!(advice(&refusal).unwrap().contains("port"), "{refusal}");
}
