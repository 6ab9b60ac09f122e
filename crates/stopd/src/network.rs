//! TLS with stop daemons on other machines.

use std::io;
use std::time::Duration;

use bywash_config::StopdTls;
use bywash_tls::{
    ClientOptions, Connector, MutualAcceptor, Negotiated, Pair, Protocols, TlsError, Warning,
};
use socket2::{SockRef, TcpKeepalive};
use tokio::net::TcpStream;

/// The name of the protocol. Its number changes when a daemon no longer understands the messages of
/// an earlier version.
const NAME: &[u8] = b"bywash-stop/1";
const PROTOCOL: Protocols = Protocols::Only(NAME);

/// Checks after a handshake that the other side has agreed on the protocol. A side that offers no
/// protocol at all passes the handshake.
pub(crate) fn check_protocol(stream: &impl Negotiated) -> io::Result<()> {
    if stream.agreed() == Some(NAME) {
        return Ok(());
    }
    let why = "the other side does not speak the protocol of the stop daemon in this version";
    Err(io::Error::new(io::ErrorKind::InvalidData, why))
}

/// Returns the faults of this daemon's certificate that do not prevent its use, as one text. A
/// relay needs no certificate for servers. Returns `None` if there are no faults.
pub(crate) fn faults(files: &StopdTls, is_server: bool) -> Option<String> {
    let pair = Pair { chain: files.certificate.clone(), key: files.key.clone() };
    let warnings = bywash_tls::check(&[pair]).unwrap_or_default();
    let is_fault = |warning: &Warning| match warning {
        Warning::NotForServers { .. } => is_server,
        // A relay verifies an IP address as well, and the name of a relay may be a URI.
        Warning::NoNames { .. } | Warning::Shadowed { .. } => false,
        _ => true,
    };
    let faults = warnings.iter().filter(|warning| is_fault(warning)).map(ToString::to_string);
    faults.reduce(|all, one| format!("{all}; {one}"))
}

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
/// machine that has vanished: after 10 s of silence and three probes, 5 s apart. While bytes are
/// unacknowledged, the kernel sends no probes, so they have the same limit of 25 s. Then the leases
/// of its applications end. Errors are ignored.
pub(crate) fn keep_alive(stream: &TcpStream) {
    const QUIET: Duration = Duration::from_secs(10);
    const AGAIN: Duration = Duration::from_secs(5);
    const UNACKNOWLEDGED: Duration = Duration::from_secs(25);
    let keepalive = TcpKeepalive::new().with_time(QUIET).with_interval(AGAIN).with_retries(3);
    let _ = stream.set_nodelay(true);
    let socket = SockRef::from(stream);
    let _ = socket.set_tcp_keepalive(&keepalive);
    let _ = socket.set_tcp_user_timeout(Some(UNACKNOWLEDGED));
}
