//! Listening sockets: inherited ones where there are any, new ones where not.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;

use bywash_config::{AdminAddress, Listen};
use bywash_handover::{Listener, Name, Sockets};
use socket2::{Domain, Protocol, SockAddr, Socket, Type};

use crate::gateway::GatewayError;

/// Connections that may wait to be accepted.
const BACKLOG: i32 = 4096;

/// Every socket that the configuration asks for.
pub(crate) fn all(
    listen: &Listen,
    inherited: &mut Sockets,
) -> Result<Vec<(Name, Listener)>, GatewayError> {
    let mut all = vec![(Name::Http, tcp(inherited, Name::Http, "listen.http", listen.http)?)];
    if let Some(https) = listen.https {
        all.push((Name::Https, tcp(inherited, Name::Https, "listen.https", https)?));
    }
    let admin = match &listen.admin {
        AdminAddress::Tcp(address) => tcp(inherited, Name::Admin, "listen.admin", *address)?,
        AdminAddress::Unix(path) => unix(inherited, path)?,
    };
    all.push((Name::Admin, admin));
    Ok(all)
}

fn tcp(
    inherited: &mut Sockets,
    name: Name,
    what: &'static str,
    address: SocketAddr,
) -> Result<Listener, GatewayError> {
    if let Some(listener) = inherited.take(name) {
        return Ok(listener);
    }
    let listener = bind(address);
    listener.map(Listener::Tcp).map_err(|source| {
        let address = address.to_string();
        GatewayError::Listen { what, address, source }
    })
}

fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    // A restart must not wait for the last process's connections to be forgotten. This does not
    // let two processes share the port.
    socket.set_reuse_address(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    socket.set_nonblocking(true)?;
    Ok(socket.into())
}

fn unix(inherited: &mut Sockets, path: &Path) -> Result<Listener, GatewayError> {
    if let Some(listener) = inherited.take(Name::Admin) {
        return Ok(listener);
    }
    let listener = bind_unix(path);
    listener.map(Listener::Unix).map_err(|source| {
        let address = format!("unix:{}", path.display());
        GatewayError::Listen { what: "listen.admin", address, source }
    })
}

/// A socket that only its owner may use. One that a killed process has left behind is replaced;
/// one that somebody answers on is not.
fn bind_unix(path: &Path) -> io::Result<UnixListener> {
    let is_socket = path.symlink_metadata().is_ok_and(|found| {
        use std::os::unix::fs::FileTypeExt;
        found.file_type().is_socket()
    });
    if is_socket {
        if UnixStream::connect(path).is_ok() {
            return Err(io::ErrorKind::AddrInUse.into());
        }
        std::fs::remove_file(path)?;
    }
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    socket.bind(&SockAddr::unix(path)?)?;
    // Before it listens: nobody else gets in between.
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
    socket.listen(BACKLOG)?;
    socket.set_nonblocking(true)?;
    Ok(socket.into())
}
