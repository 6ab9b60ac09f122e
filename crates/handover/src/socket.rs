//! Listening sockets and their names.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, ErrorKind};
use std::net::TcpListener;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixListener;

use rustix::net::{AddressFamily, SocketType, sockopt};

/// The purpose of a listening socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Name {
    /// The listener for clients, in plain text.
    Http,
    /// The listener for clients, encrypted.
    Https,
    /// The listener for operators.
    Admin,
}

impl Name {
    /// All names. Sockets without a name get them in this order.
    pub const ALL: [Self; 3] = [Self::Http, Self::Https, Self::Admin];

    /// Returns the name as in a supervisor's `FileDescriptorName=`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
            Self::Admin => "admin",
        }
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A listening socket. It does not block, and is closed when another program is executed.
#[derive(Debug)]
pub enum Listener {
    /// A socket on an address and port.
    Tcp(TcpListener),
    /// A socket on a path, or on an abstract name.
    Unix(UnixListener),
}

impl Listener {
    /// Creates a listener from a descriptor.
    ///
    /// Non-blocking mode belongs to the socket and not to the descriptor. So it changes for all
    /// processes that have the socket open. All of them need it.
    ///
    /// # Errors
    /// Returns an error if the descriptor is not a listening stream socket.
    pub(crate) fn check(descriptor: OwnedFd) -> io::Result<Self> {
        let listens = sockopt::socket_type(&descriptor)? == SocketType::STREAM
            && sockopt::socket_acceptconn(&descriptor)?;
        if !listens {
            return Err(unfit("it is not a listening stream socket"));
        }
        let family = sockopt::socket_domain(&descriptor)?;
        let listener = match family {
            AddressFamily::INET | AddressFamily::INET6 => Self::Tcp(descriptor.into()),
            AddressFamily::UNIX => Self::Unix(descriptor.into()),
            _ => return Err(unfit("it listens neither on an IP address nor on a path")),
        };
        match &listener {
            Self::Tcp(socket) => socket.set_nonblocking(true)?,
            Self::Unix(socket) => socket.set_nonblocking(true)?,
        }
        Ok(listener)
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Tcp(socket) => socket.as_fd(),
            Self::Unix(socket) => socket.as_fd(),
        }
    }
}

/// The listening sockets that a process was given: at most one per name.
#[derive(Debug, Default)]
pub struct Sockets(BTreeMap<Name, Listener>);

impl Sockets {
    /// Removes the socket with this name and returns it. Returns `None` if there is none.
    pub fn take(&mut self, name: Name) -> Option<Listener> {
        self.0.remove(&name)
    }

    /// Returns the names of the sockets that have not been taken yet.
    pub fn names(&self) -> impl Iterator<Item = Name> {
        self.0.keys().copied()
    }

    /// Returns whether no socket is left to take.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds a socket. The name must be new: `names_in_order` and `Head` both reject duplicates.
    pub(crate) fn add(&mut self, name: Name, listener: Listener) {
        let before = self.0.insert(name, listener);
        debug_assert!(before.is_none(), "{name} was given twice");
    }
}

fn unfit(why: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidInput, why)
}

#[cfg(test)]
mod tests {
    use std::net::{TcpStream, UdpSocket};

    use rustix::io::{FdFlags, fcntl_getfd};

    use super::*;

    #[test]
    fn a_listening_socket_is_taken_and_made_not_to_block() {
        let socket = TcpListener::bind("127.0.0.1:0").unwrap();
        let Listener::Tcp(taken) = Listener::check(socket.into()).unwrap() else {
            panic!("a TCP socket became something else");
        };
        assert_eq!(taken.accept().unwrap_err().kind(), ErrorKind::WouldBlock);
        assert!(fcntl_getfd(&taken).unwrap().contains(FdFlags::CLOEXEC));
    }

    #[test]
    fn a_socket_on_a_path_is_told_from_one_on_an_address() {
        let folder = tempfile::tempdir().unwrap();
        let socket = UnixListener::bind(folder.path().join("admin")).unwrap();
        let Listener::Unix(taken) = Listener::check(socket.into()).unwrap() else {
            panic!("a unix socket became something else");
        };
        assert_eq!(taken.accept().unwrap_err().kind(), ErrorKind::WouldBlock);
    }

    #[test]
    fn what_does_not_listen_is_refused() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let connection = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let datagrams = UdpSocket::bind("127.0.0.1:0").unwrap();
        let file = std::fs::File::open("/dev/null").unwrap();
        for wrong in [connection.into(), datagrams.into(), OwnedFd::from(file)] {
            assert!(Listener::check(wrong).is_err());
        }
    }

    #[test]
    fn a_socket_is_taken_once() {
        let socket = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut sockets = Sockets::default();
        sockets.add(Name::Admin, Listener::check(socket.into()).unwrap());
        assert!(sockets.take(Name::Http).is_none());
        assert!(sockets.take(Name::Admin).is_some());
        assert!(sockets.take(Name::Admin).is_none() && sockets.is_empty());
    }
}
