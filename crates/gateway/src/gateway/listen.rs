//! Creates the listening sockets of a gateway, or takes over inherited ones.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;

use bywash_config::{AdminAddress, Listen};
use bywash_handover::{Listener, Name, Sockets};
use socket2::{Domain, Protocol, SockAddr, Socket, Type};

use crate::error::GatewayError;

/// The maximum number of connections that may wait in the kernel to be accepted, per socket.
const BACKLOG: i32 = 4096;

/// Returns every listening socket that the configuration asks for. A socket with the right name in
/// `inherited` is used, whatever its address.
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

/// Returns the address that a socket listens on; `None` if the kernel does not tell it.
pub(crate) fn place(listener: &Listener) -> Option<AdminAddress> {
    match listener {
        Listener::Tcp(listener) => listener.local_addr().ok().map(AdminAddress::Tcp),
        Listener::Unix(listener) => {
            let address = listener.local_addr().ok()?;
            address.as_pathname().map(|path| AdminAddress::Unix(path.to_owned()))
        }
    }
}

/// Returns the sockets whose address is not the configured one: the configuration key, the present
/// address, and the configured address of each.
pub(crate) fn misplaced(
    listen: &Listen,
    all: &[(Name, Listener)],
) -> Vec<(&'static str, AdminAddress, AdminAddress)> {
    let wanted = |name| match name {
        Name::Http => Some(("listen.http", AdminAddress::Tcp(listen.http))),
        Name::Https => listen.https.map(|at| ("listen.https", AdminAddress::Tcp(at))),
        Name::Admin => Some(("listen.admin", listen.admin.clone())),
    };
    let odd = |(name, listener): &(Name, Listener)| {
        let ((key, wanted), place) = (wanted(*name)?, place(listener)?);
        (!is_there(&wanted, &place)).then_some((key, place, wanted))
    };
    all.iter().filter_map(odd).collect()
}

fn is_there(wanted: &AdminAddress, place: &AdminAddress) -> bool {
    match (wanted, place) {
        // A configured port 0 matches any port.
        (AdminAddress::Tcp(wanted), AdminAddress::Tcp(place)) => {
            wanted.ip() == place.ip() && [0, place.port()].contains(&wanted.port())
        }
        (AdminAddress::Unix(wanted), AdminAddress::Unix(place)) => wanted == place,
        (AdminAddress::Tcp(_), AdminAddress::Unix(_))
        | (AdminAddress::Unix(_), AdminAddress::Tcp(_)) => false,
    }
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
    // Lets a restarted process bind while old connections of the last one are in `TIME_WAIT`. This
    // does not let two processes share the port.
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

/// Binds a unix socket that only its owner may use. A socket left behind by a killed process is
/// replaced. If a process still answers on the socket, this returns `AddrInUse`.
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
    // Set the mode before the socket listens, so that no other user connects in between.
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
    socket.listen(BACKLOG)?;
    socket.set_nonblocking(true)?;
    Ok(socket.into())
}

#[cfg(test)]
mod tests {
    use bywash_config::Config;

    use super::*;

    fn wanted(admin: &str) -> Listen {
        let text = format!(
            "version = 1\nupstream.server = 'http://127.0.0.1:2'\n\
             listen = {{ http = '127.0.0.1:0', admin = '{admin}' }}"
        );
        Config::parse(&text, "test").expect("it is right").0.listen
    }

    #[test]
    fn sockets_that_are_elsewhere_are_named() {
        let bound = || TcpListener::bind("127.0.0.1:0").unwrap();
        let (http, admin) = (Listener::Tcp(bound()), Listener::Tcp(bound()));
        let is = place(&admin).unwrap();
        let all = [(Name::Http, http), (Name::Admin, admin)];
        assert_eq!(misplaced(&wanted(&is.to_string()), &all), []);
        for other in ["127.0.0.1:1", "unix:/run/bywash/admin.sock"] {
            let listen = wanted(other);
            let odd = misplaced(&listen, &all);
            assert_eq!(odd, [("listen.admin", is.clone(), listen.admin)]);
        }
    }

    #[test]
    fn a_socket_with_a_path_is_where_its_path_is() {
        let path = std::env::temp_dir().join(format!("bywash-listen-{}", std::process::id()));
        let listener = Listener::Unix(bind_unix(&path).unwrap());
        std::fs::remove_file(&path).unwrap();
        let all = [(Name::Admin, listener)];
        let listen = wanted(&format!("unix:{}", path.display()));
        assert_eq!(misplaced(&listen, &all), []);
        let tcp = wanted("127.0.0.1:1");
        let is = AdminAddress::Unix(path);
        assert_eq!(misplaced(&tcp, &all), [("listen.admin", is, tcp.admin)]);
    }
}
