//! Tests of the renewal of certificates while connections are open.

use std::fs;

use bywash_tls::{TlsError, server};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::authority::{Authority, leaf};
use crate::meeting::meet;

#[tokio::test]
async fn a_renewed_certificate_is_shown_from_the_next_handshake_on() {
    let authority = Authority::new();
    let pair = authority.issue("a", &["a.test"]);
    let served = server(std::slice::from_ref(&pair), true).unwrap();
    let old = leaf(&pair);
    assert_eq!(meet(&authority.client(), "a.test", &served).await.shown(), old);

    assert_eq!(authority.issue("a", &["a.test"]), pair, "the same files");
    assert_eq!(meet(&authority.client(), "a.test", &served).await.shown(), old, "not before");
    served.reload(std::slice::from_ref(&pair)).unwrap();
    let shown = meet(&authority.client(), "a.test", &served).await.shown();
    assert_eq!(shown, leaf(&pair));
    assert_ne!(shown, old);
}

#[tokio::test]
async fn a_name_can_be_added_and_taken_away() {
    let authority = Authority::new();
    let [a, b] = ["a.test", "b.test"].map(|name| authority.issue(name, &[name]));
    let served = server(std::slice::from_ref(&a), true).unwrap();
    let client = authority.client();
    assert!(meet(&client, "b.test", &served).await.client.is_err());
    served.reload(&[a, b.clone()]).unwrap();
    assert_eq!(meet(&authority.client(), "b.test", &served).await.shown(), leaf(&b));
    served.reload(&[b]).unwrap();
    assert!(meet(&authority.client(), "a.test", &served).await.client.is_err());
}

#[tokio::test]
async fn one_bad_file_keeps_every_old_certificate() {
    let authority = Authority::new();
    let [a, b] = ["a.test", "b.test"].map(|name| authority.issue(name, &[name]));
    let served = server(&[a.clone(), b.clone()], true).unwrap();
    let old = leaf(&a);

    authority.issue("a.test", &["a.test"]);
    fs::write(&b.chain, "half of a cert").unwrap();
    let refused = served.reload(&[a.clone(), b.clone()]).unwrap_err();
    assert!(matches!(&refused, TlsError::NoCertificate { path } if *path == b.chain), "{refused}");
    assert_eq!(meet(&authority.client(), "a.test", &served).await.shown(), old);
    assert!(matches!(served.reload(&[]), Err(TlsError::NoPairs)));
    assert_eq!(meet(&authority.client(), "a.test", &served).await.shown(), old);
}

#[tokio::test]
async fn a_clone_made_before_a_reload_serves_the_new_certificate() {
    let authority = Authority::new();
    let pair = authority.issue("a", &["a.test"]);
    let served = server(std::slice::from_ref(&pair), true).unwrap();
    let before = served.clone();
    authority.issue("a", &["a.test"]);
    served.reload(std::slice::from_ref(&pair)).unwrap();
    let meeting = meet(&authority.client(), "a.test", &before).await;
    assert_eq!(meeting.shown(), leaf(&pair));
}

#[tokio::test]
async fn a_connection_goes_on_through_a_reload() {
    let authority = Authority::new();
    let pair = authority.issue("a", &["a.test"]);
    let served = server(std::slice::from_ref(&pair), true).unwrap();
    let meeting = meet(&authority.client(), "a.test", &served).await;
    let (mut client, mut accepted) = (meeting.client.unwrap(), meeting.server.unwrap());
    authority.issue("a", &["a.test"]);
    served.reload(&[pair]).unwrap();
    client.write_all(b"still here").await.unwrap();
    client.flush().await.unwrap();
    let mut read = [0; 10];
    accepted.read_exact(&mut read).await.unwrap();
    assert_eq!(&read, b"still here");
}
