//! Determines the device by which the packets of a connection leave.
//!
//! A lane belongs to one device. A response that leaves by another device, to a proxy on this
//! machine or by a second line, is in no lane, whatever its priority is.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsFd;

use socket2::SockRef;

use crate::netlink::{Attributes, Kernel, attribute, u32_at};

/// The length in bytes of `struct rtmsg`, which begins with the family and the prefix lengths of
/// both addresses.
const SUBJECT: usize = 12;

/// Returns the index of the device that the kernel would choose now for a packet of this
/// connection. Returns `None` if the socket has no IP addresses or the kernel names no device.
pub(crate) fn device(socket: &impl AsFd) -> io::Result<Option<u32>> {
    let socket = SockRef::from(socket);
    let end = |address: socket2::SockAddr| address.as_socket();
    let (Some(from), Some(to)) = (end(socket.local_addr()?), end(socket.peer_addr()?)) else {
        return Ok(None);
    };
    match to {
        // A link-local address contains the index of its device, because it may exist on each
        // device.
        SocketAddr::V6(to) if to.scope_id() != 0 => Ok(Some(to.scope_id())),
        _ => ask(from.ip().to_canonical(), to.ip().to_canonical()),
    }
}

fn ask(from: IpAddr, to: IpAddr) -> io::Result<Option<u32>> {
    let (family, bits) = match to {
        IpAddr::V4(_) => (libc::AF_INET as u8, 32),
        IpAddr::V6(_) => (libc::AF_INET6 as u8, 128),
    };
    let mut about = [0; SUBJECT];
    about[..3].copy_from_slice(&[family, bits, bits]);
    let with =
        Attributes::default().with(libc::RTA_DST, &octets(to)).with(libc::RTA_SRC, &octets(from));
    let mut device = None;
    Kernel::open()?.ask(libc::RTM_GETROUTE, &about, &with, |body| {
        device = attribute(body.get(SUBJECT..)?, libc::RTA_OIF).and_then(|value| u32_at(value, 0));
        Some(())
    })?;
    Ok(device)
}

fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn what_stays_on_this_machine_leaves_by_the_loopback_device() {
        let loopback = Kernel::open().unwrap().device("lo").unwrap();
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(listener) = TcpListener::bind(address) else { continue };
            let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            assert_eq!(device(&client).unwrap(), loopback, "{address}");
            assert_eq!(device(&listener.accept().unwrap().0).unwrap(), loopback, "{address}");
        }
    }
}
