//! Tests with faulty files: each error names the path and the remedy.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use bywash_tls::{ClientOptions, Pair, TlsError, Warning, check, client, server};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

use crate::authority::{Authority, leaf};

/// Returns the error of a faulty pair. Checks that all three functions that read a pair return it.
fn refused(pair: &Pair) -> TlsError {
    let authority = Authority::new();
    let served = server(&[authority.issue("good", &["good.test"])], true).unwrap();
    let pairs = std::slice::from_ref(pair);
    let error = check(pairs).expect_err("check must refuse");
    let text = error.to_string();
    assert_eq!(server(pairs, true).unwrap_err().to_string(), text);
    assert_eq!(served.reload(pairs).unwrap_err().to_string(), text);
    error
}

#[track_caller]
fn says(error: &TlsError, path: &Path, remedy: &str) {
    let text = error.to_string();
    assert!(text.contains(path.to_str().unwrap()), "{text}");
    assert!(text.contains(remedy), "{text}");
}

#[test]
fn a_missing_file_is_named() {
    let authority = Authority::new();
    let good = authority.issue("a", &["a.test"]);
    let absent = good.chain.with_file_name("absent");
    let error = refused(&Pair { chain: absent.clone(), ..good.clone() });
    assert!(matches!(error, TlsError::Unreadable { .. }));
    says(&error, &absent, "check the path");
    says(&refused(&Pair { key: absent.clone(), ..good }), &absent, "check the path");
}

#[test]
fn a_folder_is_no_file() {
    let authority = Authority::new();
    let good = authority.issue("a", &["a.test"]);
    let folder = good.chain.parent().unwrap().to_owned();
    says(&refused(&Pair { chain: folder.clone(), ..good }), &folder, "give the file in it");
}

#[test]
fn a_key_where_a_certificate_should_be_and_the_other_way_round() {
    let authority = Authority::new();
    let good = authority.issue("a", &["a.test"]);
    let error = refused(&Pair { chain: good.key.clone(), key: good.key.clone() });
    assert!(matches!(error, TlsError::NoCertificate { .. }));
    says(&error, &good.key, "BEGIN CERTIFICATE");
    let error = refused(&Pair { chain: good.chain.clone(), key: good.chain.clone() });
    assert!(matches!(error, TlsError::NoKey { .. }));
    says(&error, &good.chain, "BEGIN PRIVATE KEY");
}

#[test]
fn an_empty_file_has_no_certificate() {
    let authority = Authority::new();
    let good = authority.issue("a", &["a.test"]);
    let empty = authority.write("empty.pem", "");
    assert!(matches!(
        refused(&Pair { chain: empty.clone(), ..good.clone() }),
        TlsError::NoCertificate { path } if path == empty
    ));
    assert!(matches!(
        refused(&Pair { key: empty.clone(), ..good }),
        TlsError::NoKey { path } if path == empty
    ));
}

#[test]
fn der_is_told_how_to_become_pem() {
    let authority = Authority::new();
    let good = authority.issue("a", &["a.test"]);
    let chain = good.chain.with_extension("der");
    fs::write(&chain, CertificateDer::from_pem_file(&good.chain).unwrap()).unwrap();
    let error = refused(&Pair { chain: chain.clone(), ..good.clone() });
    assert!(matches!(error, TlsError::Der { .. }));
    says(&error, &chain, "openssl x509 -inform der");
    let key = good.key.with_extension("der");
    fs::write(&key, PrivateKeyDer::from_pem_file(&good.key).unwrap().secret_der()).unwrap();
    says(&refused(&Pair { key: key.clone(), ..good }), &key, "openssl pkey -inform");
}

#[test]
fn half_a_file_is_damaged() {
    let authority = Authority::new();
    let good = authority.issue("a", &["a.test"]);
    for file in [&good.chain, &good.key] {
        let whole = fs::read_to_string(file).unwrap();
        fs::write(file, &whole[..whole.len() / 2]).unwrap();
        let error = refused(&good);
        assert!(matches!(error, TlsError::Damaged { .. }), "{error}");
        says(&error, file, "copy it again");
        fs::write(file, whole).unwrap();
    }
}

#[test]
fn a_certificate_of_nonsense_is_named_by_its_place() {
    let authority = Authority::new();
    let good = authority.issue("a", &["a.test"]);
    let chain = fs::read_to_string(&good.chain).unwrap();
    let nonsense = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    fs::write(&good.chain, chain + nonsense).unwrap();
    let error = refused(&good);
    assert!(matches!(error, TlsError::BadCertificate { place: 2, .. }), "{error}");
    says(&error, &good.chain, "certificate 2 of");
}

#[test]
fn an_encrypted_key_is_told_how_to_be_decrypted() {
    let authority = Authority::new();
    let good = authority.issue("a", &["a.test"]);
    let headers = "Proc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00\n\n";
    for text in [
        "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n".into(),
        format!("-----BEGIN RSA PRIVATE KEY-----\n{headers}AAAA\n-----END RSA PRIVATE KEY-----\n"),
    ] {
        let key = authority.write("encrypted.key", &text);
        let error = refused(&Pair { key: key.clone(), ..good.clone() });
        assert!(matches!(error, TlsError::KeyEncrypted { .. }), "{error}");
        says(&error, &key, "openssl pkey");
    }
}

#[test]
fn a_key_of_nonsense_is_told_what_can_be_used() {
    let authority = Authority::new();
    let good = authority.issue("a", &["a.test"]);
    let text = "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n";
    let key = authority.write("bad.key", text);
    let error = refused(&Pair { key: key.clone(), ..good });
    assert!(matches!(error, TlsError::BadKey { .. }), "{error}");
    says(&error, &key, "ECDSA P-256");
}

#[test]
fn a_key_of_another_certificate_is_refused_with_both_paths() {
    let authority = Authority::new();
    let [a, b] = ["a", "b"].map(|file| authority.issue(file, &["a.test"]));
    let error = refused(&Pair { chain: a.chain.clone(), key: b.key.clone() });
    assert!(matches!(error, TlsError::KeyMismatch { .. }), "{error}");
    says(&error, &a.chain, "after a renewal both change");
    says(&error, &b.key, "after a renewal both change");
}

#[test]
fn a_chain_in_the_wrong_order_is_told_so() {
    let authority = Authority::new();
    let good = authority.issue("a", &["a.test"]);
    let [leaf, ca] = [&good.chain, &authority.file].map(|file| fs::read_to_string(file).unwrap());
    fs::write(&good.chain, format!("{ca}{leaf}")).unwrap();
    let error = refused(&good);
    assert!(matches!(error, TlsError::LeafNotFirst { place: 2, .. }), "{error}");
    says(&error, &good.chain, "put number 2");
    fs::write(&good.chain, format!("{leaf}{ca}")).unwrap();
    assert_eq!(check(&[good]).unwrap(), []);
}

#[test]
fn a_file_without_end_is_not_read_to_its_end() {
    let authority = Authority::new();
    let good = authority.issue("a", &["a.test"]);
    let endless = Path::new("/dev/zero");
    let error = refused(&Pair { chain: endless.into(), ..good });
    assert!(matches!(error, TlsError::TooLarge { .. }), "{error}");
    says(&error, endless, "4 MiB");
}

#[test]
fn nothing_to_serve_is_an_error() {
    assert!(matches!(check(&[]), Err(TlsError::NoPairs)));
    assert!(matches!(server(&[], true), Err(TlsError::NoPairs)));
}

#[test]
fn certificate_and_key_may_be_in_one_file() {
    let authority = Authority::new();
    let good = authority.issue("a", &["a.test"]);
    let certificate = leaf(&good);
    let both = [&good.key, &good.chain].map(|file| fs::read_to_string(file).unwrap()).concat();
    let both = authority.write("both.pem", &both);
    fs::set_permissions(&both, fs::Permissions::from_mode(0o640)).unwrap();
    let pair = Pair { chain: both.clone(), key: both };
    assert_eq!(check(std::slice::from_ref(&pair)).unwrap(), []);
    assert_eq!(leaf(&pair), certificate);
}

#[test]
fn a_key_that_everybody_can_read_is_a_warning() {
    let authority = Authority::new();
    let pair = authority.issue("a", &["a.test"]);
    fs::set_permissions(&pair.key, fs::Permissions::from_mode(0o644)).unwrap();
    let warnings = check(std::slice::from_ref(&pair)).unwrap();
    assert_eq!(warnings, [Warning::KeyReadable { path: pair.key.clone(), mode: 0o644 }]);
    assert!(warnings[0].to_string().contains("(mode 0644): chmod o-rwx"), "{}", warnings[0]);
}

#[test]
fn an_authority_that_is_none_is_named() {
    let authority = Authority::new();
    let text = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    let bad = authority.write("bad-ca.pem", text);
    let options = ClientOptions { ca: Some(bad.clone()), ..ClientOptions::default() };
    let error = client(options).unwrap_err();
    assert!(matches!(error, TlsError::BadCertificate { place: 1, .. }), "{error}");
    says(&error, &bad, "certificate 1 of");
}
