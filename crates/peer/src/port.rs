//! Ports for programs that cannot be given one by the kernel and asked which it was.

use std::io;
use std::net::TcpListener;
use std::sync::atomic::{AtomicU16, Ordering};

/// A port nobody listens on, below the range the kernel takes for outgoing connections, so that
/// none of those can take it before its user does.
pub fn free_port() -> io::Result<u16> {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    // Each process begins elsewhere, so that two hardly ever look at the same.
    let start = 20_000 + (std::process::id() % 100) as u16 * 100;
    for _ in 0..1000 {
        let port = start + NEXT.fetch_add(1, Ordering::Relaxed) % 2000;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return Ok(port);
        }
    }
    Err(io::Error::other("no free port"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn free_ports_differ() {
        assert_ne!(free_port().unwrap(), free_port().unwrap());
    }
}
