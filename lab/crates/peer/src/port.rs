//! Finds ports for programs that cannot let the kernel choose a port and report it.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU16, Ordering};

use socket2::{Domain, Socket, Type};

/// Returns a port that no process listens on. The port is below the range from which the kernel
/// takes ports of outgoing connections. No outgoing connection can therefore take the port before
/// the program does.
pub fn free_port() -> io::Result<u16> {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    // Each process begins at another port, so that two processes rarely try the same port.
    let start = 20_000 + (std::process::id() % 100) as u16 * 100;
    for _ in 0..1000 {
        let port = start + NEXT.fetch_add(1, Ordering::Relaxed) % 2000;
        if is_free(port)? {
            return Ok(port);
        }
    }
    Err(io::Error::other("no free port"))
}

/// Returns whether the port can be bound. This function binds the port but never listens on it.
/// Otherwise a program that another thread starts at the same time would inherit the listening
/// socket until `exec`, and would accept connections.
fn is_free(port: u16) -> io::Result<bool> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
    socket.set_reuse_address(true)?;
    Ok(socket.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, port)).into()).is_ok())
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn free_ports_differ() {
        assert_ne!(free_port().unwrap(), free_port().unwrap());
    }

    #[test]
    fn a_port_that_somebody_listens_on_is_not_free() {
        let listener = TcpListener::bind(("127.0.0.1", free_port().unwrap())).unwrap();
        assert!(!is_free(listener.local_addr().unwrap().port()).unwrap());
    }
}
