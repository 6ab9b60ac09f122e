//! An authority for the tests, and files with its certificates.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use bywash_tls::{ClientOptions, Connector, Pair, Protocols, client};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, PKCS_ECDSA_P256_SHA256,
    SignatureAlgorithm,
};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;

pub(crate) struct Authority {
    place: tempfile::TempDir,
    issuer: Issuer<'static, KeyPair>,
    /// The PEM file of the authority itself.
    pub(crate) file: PathBuf,
}

impl Authority {
    /// Creates an authority with a name and a key of its own.
    pub(crate) fn new() -> Self {
        let place = tempfile::tempdir().unwrap();
        let name = place.path().display().to_string();
        Self::named(place, &name)
    }

    pub(crate) fn named(place: tempfile::TempDir, name: &str) -> Self {
        let file = place.path().join("ca.pem");
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, name);
        fs::write(&file, params.self_signed(&key).unwrap().pem()).unwrap();
        Self { place, issuer: Issuer::new(params, key), file }
    }

    pub(crate) fn issue(&self, file: &str, names: &[&str]) -> Pair {
        self.issue_with(file, names, &PKCS_ECDSA_P256_SHA256)
    }

    /// Writes `file.pem` and `file.key`, replacing earlier ones.
    pub(crate) fn issue_with(
        &self,
        file: &str,
        names: &[&str],
        algorithm: &'static SignatureAlgorithm,
    ) -> Pair {
        let key = KeyPair::generate_for(algorithm).unwrap();
        let names: Vec<_> = names.iter().map(|&name| name.to_owned()).collect();
        let params = CertificateParams::new(names).unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        let key_file = self.write(&format!("{file}.key"), &key.serialize_pem());
        fs::set_permissions(&key_file, fs::Permissions::from_mode(0o600)).unwrap();
        Pair { chain: self.write(&format!("{file}.pem"), &certificate.pem()), key: key_file }
    }

    pub(crate) fn write(&self, file: &str, text: &str) -> PathBuf {
        let path = self.place.path().join(file);
        fs::write(&path, text).unwrap();
        path
    }

    /// Returns a client that trusts this authority only.
    pub(crate) fn client(&self) -> Connector {
        client(self.trusted()).unwrap()
    }

    pub(crate) fn trusted(&self) -> ClientOptions {
        ClientOptions {
            ca: Some(self.file.clone()),
            protocols: Protocols::Http2,
            ..ClientOptions::default()
        }
    }
}

/// Returns the first certificate of the pair's chain.
pub(crate) fn leaf(pair: &Pair) -> CertificateDer<'static> {
    CertificateDer::from_pem_file(&pair.chain).unwrap()
}
