//! The certificate of every program under test, and a TLS client that verifies it.

use rcgen::{CertifiedKey, KeyPair, generate_simple_self_signed};
use rustls::client::Resumption;
use rustls::crypto::ring;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use std::fs;
use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::{Arc, LazyLock};

const NAME: &str = "bench.test";

/// The certificate of all programs in a run. It is self-signed with a P-256 key, and contains only
/// what is necessary, so that handshakes are short.
static CERTIFICATE: LazyLock<CertifiedKey<KeyPair>> = LazyLock::new(|| {
    generate_simple_self_signed([NAME.to_owned()]).expect("a plain name makes a certificate")
});

/// Writes the certificate and its key into `folder` in the forms that the programs need:
/// `certificate.pem` and `key.pem`, and both in `both.pem`.
pub fn write_files(folder: &Path) -> io::Result<()> {
    let (certificate, key) = (CERTIFICATE.cert.pem(), CERTIFICATE.signing_key.serialize_pem());
    fs::write(folder.join("certificate.pem"), &certificate)?;
    fs::write(folder.join("key.pem"), &key)?;
    fs::write(folder.join("both.pem"), certificate + &key)
}

/// A TLS 1.3 client without session resumption, so that every handshake is a full one.
#[derive(Debug, Clone)]
pub struct Client(Arc<ClientConfig>);

impl Client {
    /// Creates a client that trusts only the certificate of [`write_files`].
    pub fn new() -> io::Result<Self> {
        let mut roots = RootCertStore::empty();
        let certificate: CertificateDer<'static> = CERTIFICATE.cert.der().clone();
        roots.add(certificate).map_err(io::Error::other)?;
        let provider = Arc::new(ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider);
        let builder = builder.with_protocol_versions(&[&rustls::version::TLS13]);
        let builder = builder.map_err(io::Error::other)?.with_root_certificates(roots);
        let mut config = builder.with_no_client_auth();
        config.resumption = Resumption::disabled();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self(Arc::new(config)))
    }

    /// Performs a TLS handshake over `stream`, which must be blocking.
    pub fn connect(
        &self,
        mut stream: TcpStream,
    ) -> io::Result<StreamOwned<ClientConnection, TcpStream>> {
        let name = ServerName::try_from(NAME).map_err(io::Error::other)?;
        let config = Arc::clone(&self.0);
        let mut connection = ClientConnection::new(config, name).map_err(io::Error::other)?;
        while connection.is_handshaking() {
            connection.complete_io(&mut stream)?;
        }
        Ok(StreamOwned::new(connection, stream))
    }

    /// Returns the bytes of a `ClientHello`, the first message of a TLS client.
    pub fn hello(&self) -> io::Result<Vec<u8>> {
        let name = ServerName::try_from(NAME).map_err(io::Error::other)?;
        let config = Arc::clone(&self.0);
        let mut connection = ClientConnection::new(config, name).map_err(io::Error::other)?;
        let mut hello = Vec::new();
        while connection.wants_write() {
            connection.write_tls(&mut hello)?;
        }
        Ok(hello)
    }
}

/// A plain-text or TLS connection. On a nonblocking socket, one read returns all received bytes
/// that fit into the buffer. No readable bytes stay inside the TLS state.
#[derive(Debug)]
pub enum MaybeTlsStream {
    /// A plain-text connection.
    Clear(TcpStream),
    /// A TLS connection.
    Tls(Box<StreamOwned<ClientConnection, TcpStream>>),
}

impl MaybeTlsStream {
    /// Returns the socket of the connection, for its options and readiness.
    pub fn socket(&self) -> &TcpStream {
        match self {
            Self::Clear(stream) => stream,
            Self::Tls(tls) => &tls.sock,
        }
    }
}

impl Read for MaybeTlsStream {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        let tls = match self {
            Self::Clear(stream) => return stream.read(room),
            Self::Tls(tls) => tls,
        };
        let mut got = 0;
        while got < room.len() {
            match tls.read(&mut room[got..]) {
                Ok(0) => return Ok(got),
                Ok(count) => got += count,
                Err(e) if e.kind() == ErrorKind::WouldBlock && got > 0 => return Ok(got),
                Err(e) => return Err(e),
            }
        }
        Ok(got)
    }
}

impl Write for MaybeTlsStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Clear(stream) => stream.write(bytes),
            Self::Tls(tls) => tls.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Clear(stream) => stream.flush(),
            Self::Tls(tls) => tls.flush(),
        }
    }
}
