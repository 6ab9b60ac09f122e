//! An authority for the tests, and certificates of it for daemons.

use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use bywash_config::{StopdNetwork, StopdTls};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use tempfile::TempDir;

pub(crate) struct Authority {
    folder: TempDir,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::default();
        // Two authorities of one name would be confused.
        params.distinguished_name.push(DnType::CommonName, folder.path().display().to_string());
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        fs::write(folder.path().join("ca.pem"), params.self_signed(&key).unwrap().pem()).unwrap();
        Self { folder, issuer: Issuer::new(params, key) }
    }

    /// Returns the path of the authority's own certificate.
    pub(crate) fn file(&self) -> PathBuf {
        self.folder.path().join("ca.pem")
    }

    /// Writes the files of a daemon whose certificate has these DNS names and addresses.
    pub(crate) fn issue(&self, names: &[&str]) -> StopdTls {
        let key = KeyPair::generate().unwrap();
        let params: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        let certificate =
            CertificateParams::new(params).unwrap().signed_by(&key, &self.issuer).unwrap();
        let file = |kind| self.folder.path().join(format!("{}.{kind}", names[0]));
        fs::write(file("pem"), certificate.pem()).unwrap();
        fs::write(file("key"), key.serialize_pem()).unwrap();
        fs::set_permissions(file("key"), fs::Permissions::from_mode(0o600)).unwrap();
        StopdTls { ca: self.file(), certificate: file("pem"), key: file("key") }
    }

    /// Returns the settings of a daemon at the IP address of `address`. A relay with a certificate
    /// for `app.test` may lease and stop.
    pub(crate) fn accepts(&self, address: SocketAddr) -> StopdNetwork {
        StopdNetwork::Accepts {
            address,
            leases: vec!["app.test".into()],
            stops: vec!["app.test".into()],
            tls: self.issue(&[&address.ip().to_string()]),
        }
    }
}

/// Returns the settings of a relay to a daemon at `address`.
pub(crate) fn relays(address: SocketAddr, tls: StopdTls) -> StopdNetwork {
    StopdNetwork::Relays { host: address.ip().to_string(), port: address.port(), tls }
}
