//! Performs a handshake through a pipe in memory.

use std::io;

use bywash_tls::{Connector, HandshakeFailure, Served};
use rustls_pki_types::CertificateDer;
use tokio::io::DuplexStream;
use tokio_rustls::{TlsAcceptor, client, server};

pub(crate) struct Meeting<E> {
    pub(crate) client: io::Result<client::TlsStream<DuplexStream>>,
    pub(crate) server: Result<server::TlsStream<DuplexStream>, E>,
}

pub(crate) async fn meet(
    connector: &Connector,
    host: &str,
    served: &Served,
) -> Meeting<HandshakeFailure> {
    let (near, far) = tokio::io::duplex(1 << 16);
    let (client, accepted) = tokio::join!(connector.connect(host, near), served.accept(far));
    Meeting { client, server: accepted }
}

pub(crate) async fn meet_acceptor(
    connector: &Connector,
    host: &str,
    acceptor: &TlsAcceptor,
) -> Meeting<io::Error> {
    let (near, far) = tokio::io::duplex(1 << 16);
    let (client, server) = tokio::join!(connector.connect(host, near), acceptor.accept(far));
    Meeting { client, server }
}

impl<E> Meeting<E> {
    /// Returns the server's certificate, which the client must have accepted.
    pub(crate) fn shown(&self) -> CertificateDer<'static> {
        let connection = self.client.as_ref().unwrap().get_ref().1;
        connection.peer_certificates().unwrap()[0].clone().into_owned()
    }

    /// Returns the error of the client.
    pub(crate) fn refusal(&self) -> &io::Error {
        self.client.as_ref().unwrap_err()
    }
}
