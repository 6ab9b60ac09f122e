//! Client connections from chosen source addresses, and the reasons why their reads and writes
//! fail. One address has only 28,000 ports for outgoing connections, and real crowds use many
//! addresses.

use crate::sys;
use socket2::{Domain, Socket, Type};
use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, SocketAddrV4, TcpStream};

/// Returns the `n`-th address of 127.1.0.0/16. All of them are loopback addresses other than
/// 127.0.0.1.
pub fn address(n: usize) -> Ipv4Addr {
    let [high, low] = ((n % 0xfffe) as u16 + 1).to_be_bytes();
    Ipv4Addr::new(127, 1, high, low)
}

/// Connects from the address `source` to `port` of 127.0.0.1, with Nagle's algorithm off.
pub fn connect_from(source: Ipv4Addr, port: u16) -> io::Result<TcpStream> {
    let socket = bound(source)?;
    socket.connect(&SocketAddrV4::new(Ipv4Addr::LOCALHOST, port).into())?;
    Ok(socket.into())
}

/// Connects like [`connect_from`], but with the segment size of Ethernet. With loopback's segments
/// of 64 KiB, a slow reader would acknowledge nothing for seconds and then many bytes at once.
pub fn connect_over_line(source: Ipv4Addr, port: u16) -> io::Result<TcpStream> {
    let socket = bound(source)?;
    socket.set_tcp_mss(1460)?;
    socket.connect(&SocketAddrV4::new(Ipv4Addr::LOCALHOST, port).into())?;
    Ok(socket.into())
}

/// Starts a connect like [`connect_from`] and returns at once with a nonblocking socket.
pub fn begin_connect(source: Ipv4Addr, port: u16) -> io::Result<TcpStream> {
    let socket = bound(source)?;
    socket.set_nonblocking(true)?;
    match socket.connect(&SocketAddrV4::new(Ipv4Addr::LOCALHOST, port).into()) {
        Err(e) if e.raw_os_error() == Some(libc::EINPROGRESS) => Ok(socket.into()),
        result => result.map(|()| socket.into()),
    }
}

/// Returns whether `e` means that no byte was received or sent within the time limit of the socket.
pub fn is_timeout(e: &io::Error) -> bool {
    matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}

/// Returns whether `e` means that the other side has ended the connection.
pub fn is_end(e: &io::Error) -> bool {
    matches!(e.kind(), ErrorKind::ConnectionReset | ErrorKind::BrokenPipe)
}

fn bound(source: Ipv4Addr) -> io::Result<Socket> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
    socket.set_tcp_nodelay(true)?;
    sys::choose_port_late(&socket)?;
    socket.bind(&SocketAddrV4::new(source, 0).into())?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn a_connection_comes_from_the_address_it_is_to_come_from() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        for source in [address(0), address(70_000)] {
            let _waiting = connect_from(source, port).unwrap();
            assert_eq!(listener.accept().unwrap().1.ip(), source);
            let _begun = begin_connect(source, port).unwrap();
            assert_eq!(listener.accept().unwrap().1.ip(), source);
        }
    }
}
