//! Asks the kernel whether a process still holds one end of a TCP connection.
//!
//! A proxy whose upload is blocked cannot show its upstream that it has given up, because the FIN
//! follows bytes that the upstream does not read. The kernel still knows that the proxy has closed
//! its socket. The look-up of one socket takes about 5 µs; reading `/proc/net/tcp` takes a
//! millisecond. The format is described in `sock_diag(7)` and `linux/inet_diag.h`.

use std::fs::File;
use std::io::{self, Read, Write};
use std::net::SocketAddrV4;
use std::thread;
use std::time::{Duration, Instant};

use bywash_harness::sys;

/// Size of `struct nlmsghdr`, in bytes.
const HEADER: usize = 16;
/// Size of `struct inet_diag_req_v2`, in bytes.
const REQUEST: usize = 56;
/// Offset in an answer of the field `idiag_inode`, the last of `struct inet_diag_msg`, in bytes.
const INODE: usize = HEADER + 68;
const SOCK_DIAG_BY_FAMILY: u16 = 20;
const NLMSG_ERROR: u16 = 2;
const ENOENT: i32 = 2;
/// Requested pause between two look-ups; the kernel extends it to about 80 µs. A busy loop would
/// have a better resolution. On a small machine, however, a busy loop would take the core that the
/// proxy needs to react.
const PAUSE: Duration = Duration::from_micros(20);

/// An open `sock_diag` socket.
#[derive(Debug)]
pub struct SockDiag {
    netlink: File,
}

impl SockDiag {
    /// Opens the socket. Fails if the kernel was built without `INET_DIAG`.
    pub fn open() -> io::Result<Self> {
        Ok(Self { netlink: sys::open_sock_diag()? })
    }

    /// Returns whether a process has the socket from `local` to `remote` open. A socket that no
    /// process has open, and that the kernel is still closing, does not count: it has no owner and
    /// no inode.
    pub fn is_held(&mut self, local: SocketAddrV4, remote: SocketAddrV4) -> io::Result<bool> {
        self.netlink.write_all(&question(local, remote))?;
        let mut answer = [0; 1024];
        let length = self.netlink.read(&mut answer)?;
        inode(&answer[..length]).map(|inode| inode != 0)
    }

    /// Waits at most `bound` until no process has the socket open. Returns the time at which this
    /// was first seen, or `None` if a process still has the socket open after `bound`.
    pub fn wait_released(
        &mut self,
        (local, remote): (SocketAddrV4, SocketAddrV4),
        bound: Duration,
    ) -> io::Result<Option<Instant>> {
        let start = Instant::now();
        while start.elapsed() < bound {
            if !self.is_held(local, remote)? {
                return Ok(Some(Instant::now()));
            }
            thread::sleep(PAUSE);
        }
        Ok(None)
    }
}

fn question(local: SocketAddrV4, remote: SocketAddrV4) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEADER + REQUEST);
    bytes.extend(((HEADER + REQUEST) as u32).to_ne_bytes());
    bytes.extend(SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    bytes.extend((libc::NLM_F_REQUEST as u16).to_ne_bytes());
    bytes.extend([0; 8]); // sequence number, sender: one question at a time
    bytes.extend([libc::AF_INET as u8, libc::IPPROTO_TCP as u8, 0, 0]);
    bytes.extend(u32::MAX.to_ne_bytes()); // any state
    bytes.extend(local.port().to_be_bytes());
    bytes.extend(remote.port().to_be_bytes());
    for address in [local, remote] {
        bytes.extend(address.ip().octets());
        bytes.extend([0; 12]); // room for IPv6
    }
    bytes.extend([0; 4]); // any interface
    bytes.extend([0xff; 8]); // no cookie
    bytes
}

/// Returns the inode of the socket in an answer; 0 if there is no such socket.
fn inode(answer: &[u8]) -> io::Result<u32> {
    let number = |at: usize| {
        let bytes = answer.get(at..at + 4).and_then(|bytes| bytes.try_into().ok());
        bytes.map(u32::from_ne_bytes).ok_or_else(|| io::Error::other("short sock_diag answer"))
    };
    if number(4)? as u16 != NLMSG_ERROR {
        return number(INODE);
    }
    match -number(HEADER)?.cast_signed() {
        ENOENT => Ok(0),
        errno => Err(io::Error::from_raw_os_error(errno)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{SocketAddr, TcpListener, TcpStream};

    fn v4(address: SocketAddr) -> SocketAddrV4 {
        address.to_string().parse().unwrap()
    }

    #[test]
    fn a_socket_is_held_until_its_process_closes_it_even_while_bytes_are_pending() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let pair = (v4(client.local_addr().unwrap()), v4(listener.local_addr().unwrap()));
        let mut diag = SockDiag::open().unwrap();
        assert!(diag.is_held(pair.0, pair.1).unwrap());
        client.shutdown(std::net::Shutdown::Write).unwrap();
        assert!(diag.is_held(pair.0, pair.1).unwrap());
        drop(client);
        assert!(diag.wait_released(pair, Duration::from_secs(1)).unwrap().is_some());
    }
}
