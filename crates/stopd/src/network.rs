//! TLS with stop daemons on other machines.

use std::time::Duration;

use bywash_config::StopdTls;
use bywash_tls::{ClientOptions, Connector, MutualAcceptor, Pair, Protocols, TlsError};
use socket2::{SockRef, TcpKeepalive};
use tokio::net::TcpStream;

/// The name of the protocol. Its number changes if a daemon no longer understands the messages of
/// an earlier one, which is then rejected in the handshake.
const PROTOCOL: Protocols = Protocols::Only(b"bywash-stop/1");

/// Reads the files for connections from relays.
pub(crate) fn acceptor(files: StopdTls) -> Result<MutualAcceptor, TlsError> {
    MutualAcceptor::new(&files.ca, &Pair { chain: files.certificate, key: files.key }, PROTOCOL)
}

/// Reads the files for connections to another daemon.
pub(crate) fn connector(files: StopdTls) -> Result<Connector, TlsError> {
    bywash_tls::client(ClientOptions {
        ca: Some(files.ca),
        name: None,
        certificate: Some((files.certificate, files.key)),
        protocols: PROTOCOL,
    })
}

/// Turns on TCP keep-alive, and turns off Nagle's algorithm. By keep-alive the kernel detects a
/// machine that has vanished: after 10 s of silence and three probes, 5 s apart. Then the leases of
/// its applications end. Errors are ignored.
pub(crate) fn keep_alive(stream: &TcpStream) {
    const QUIET: Duration = Duration::from_secs(10);
    const AGAIN: Duration = Duration::from_secs(5);
    let keepalive = TcpKeepalive::new().with_time(QUIET).with_interval(AGAIN).with_retries(3);
    let _ = stream.set_nodelay(true);
    let _ = SockRef::from(stream).set_tcp_keepalive(&keepalive);
}
