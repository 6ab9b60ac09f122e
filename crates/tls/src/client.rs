//! The TLS side towards an upstream, whose certificate is always verified.
//!
//! The authorities of one file are trusted, or the authorities of the system, but never both. No
//! public authority may vouch for an upstream that has an authority of its own. The name that is
//! verified, and sent as SNI, is the host of the upstream's URL, unless another is configured.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::{
    AlertDescription, CertificateError, ClientConfig, ConfigBuilder, Error, RootCertStore,
    WantsVerifier,
};
use rustls_pki_types::{ServerName, UnixTime};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::{Expiry, Pair, Protocols, TlsError, VERSIONS, pair, pem, provider};

/// The options of TLS towards an upstream.
#[derive(Clone, Debug, Default)]
pub struct ClientOptions {
    /// A PEM file with the only authorities to trust. Without it, the system's authorities are
    /// trusted.
    pub ca: Option<PathBuf>,
    /// The name to ask for and to verify, instead of the host of the URL.
    pub name: Option<String>,
    /// The files with the certificate chain and the key to present if the upstream asks for a
    /// certificate (mTLS).
    pub certificate: Option<(PathBuf, PathBuf)>,
    /// The protocols to offer.
    pub protocols: Protocols,
}

/// Makes TLS connections to an upstream. It is cheap to clone, and clones can resume each other's
/// sessions.
#[derive(Clone)]
pub struct Connector {
    tls: TlsConnector,
    name: Option<ServerName<'static>>,
    expiry: Option<Expiry>,
}

impl std::fmt::Debug for Connector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connector").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Reads the files that `options` names, and builds a connector.
///
/// # Errors
/// Returns the first fault, with its file.
pub fn client(options: ClientOptions) -> Result<Connector, TlsError> {
    let roots = match &options.ca {
        Some(path) => authorities(path)?,
        None => system_authorities()?,
    };
    let builder = builder().with_root_certificates(roots);
    let mut expiry = None;
    let mut config = match options.certificate {
        Some((chain, key)) => {
            let ours = pair::load(&Pair { chain, key }, UnixTime::now())?;
            expiry = Some(ours.expiry);
            let always = rustls::sign::SingleCertAndKey::from(ours.certified);
            builder.with_client_cert_resolver(Arc::new(always))
        }
        None => builder.with_no_client_auth(),
    };
    config.alpn_protocols = options.protocols.names();
    let name = match options.name {
        Some(name) => Some(server_name(&name).ok_or(TlsError::BadName { name })?),
        None => None,
    };
    Ok(Connector { tls: TlsConnector::from(Arc::new(config)), name, expiry })
}

fn builder() -> ConfigBuilder<ClientConfig, WantsVerifier> {
    ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(VERSIONS)
        .expect("ring has cipher suites for both versions")
}

impl Connector {
    /// Returns the time at which the certificate that is presented to servers expires. Returns
    /// `None` if there is none.
    pub const fn expiry(&self) -> Option<&Expiry> {
        self.expiry.as_ref()
    }

    /// Returns the configuration, for a library that performs the handshake itself. It does not
    /// contain [`ClientOptions::name`].
    pub fn config(&self) -> &ClientConfig {
        self.tls.config()
    }

    /// Performs a TLS handshake on `stream` with the upstream `host`, a name or an address (an IPv6
    /// address may have the brackets of a URL). The caller bounds the time.
    ///
    /// # Errors
    /// Returns an error if the upstream's identity is not verified, if it rejects us, or if it
    /// closes the connection. [`advice`] returns a remedy.
    pub async fn connect<S>(&self, host: &str, stream: S) -> io::Result<TlsStream<S>>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let name = match &self.name {
            Some(name) => name.clone(),
            None => server_name(host).ok_or_else(|| {
                let name = host.to_owned();
                io::Error::new(io::ErrorKind::InvalidInput, TlsError::BadName { name })
            })?,
        };
        self.tls.connect(name, stream).await
    }
}

fn server_name(host: &str) -> Option<ServerName<'static>> {
    let bare = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(host);
    ServerName::try_from(bare).ok().map(|name| name.to_owned())
}

pub(crate) fn authorities(path: &Path) -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    for (index, certificate) in pem::certificates(path)?.into_iter().enumerate() {
        roots.add(certificate).map_err(|error| TlsError::BadCertificate {
            path: path.into(),
            place: index + 1,
            reason: error.to_string(),
        })?;
    }
    Ok(roots)
}

/// Returns the authorities that the operating system trusts, without those that cannot be parsed.
/// Most systems have one or two of these, and an operator can do nothing about them.
fn system_authorities() -> Result<RootCertStore, TlsError> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    let (added, _ignored) = roots.add_parsable_certificates(found.certs);
    if added > 0 {
        return Ok(roots);
    }
    let reason = found.errors.first().map_or_else(|| "none found".into(), ToString::to_string);
    Err(TlsError::NoRoots { reason })
}

/// Returns the remedy for a failed handshake with an upstream. Also works for a failure of the
/// first read after it: in TLS 1.3, a server rejects our certificate only then. Returns `None` if
/// no remedy is known.
pub fn advice(error: &io::Error) -> Option<&'static str> {
    match error.get_ref()?.downcast_ref::<Error>()? {
        Error::InvalidCertificate(reason) => certificate_advice(reason),
        Error::AlertReceived(
            AlertDescription::CertificateRequired
            | AlertDescription::BadCertificate
            | AlertDescription::CertificateUnknown
            | AlertDescription::UnknownCA
            | AlertDescription::DecryptError
            | AlertDescription::AccessDenied,
        ) => Some("the upstream requires a client certificate, or another one"),
        Error::AlertReceived(AlertDescription::NoApplicationProtocol) => {
            Some("the upstream speaks none of the HTTP versions that bywash offers")
        }
        Error::AlertReceived(AlertDescription::ProtocolVersion) => {
            Some("the upstream speaks neither TLS 1.2 nor 1.3")
        }
        Error::AlertReceived(AlertDescription::UnrecognisedName) => {
            Some("the upstream has no certificate for this name: give another as `name`")
        }
        Error::InvalidMessage(_) => Some("the server there does not speak TLS: check the port"),
        _ => None,
    }
}

fn certificate_advice(reason: &CertificateError) -> Option<&'static str> {
    match reason {
        CertificateError::UnknownIssuer => {
            Some("no trusted authority has issued the certificate: name the upstream's in `ca`")
        }
        CertificateError::BadSignature => {
            Some("its authority has the name of a trusted one, but another key: renew `ca`")
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            Some("the certificate is for another name: give that one as `name`")
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            Some("the certificate has expired: renew it on the upstream")
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            Some("the certificate is not valid yet: check both clocks")
        }
        CertificateError::Other(other) => match other.0.downcast_ref::<webpki::Error>()? {
            webpki::Error::CaUsedAsEndEntity => {
                Some("the certificate is an authority's (CA:TRUE): have one issued with CA:FALSE")
            }
            _ => None,
        },
        _ => None,
    }
}
