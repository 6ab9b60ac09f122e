//! An attack on the operators' listener: many watchers with a read-only token. Probes, and the
//! switch to the bypass, must still work.

use super::target::Target;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::thread;
use std::time::Duration;

use bywash_harness::client_socket;
use bywash_harness::http;

const WATCHERS: usize = 300;
const PROBES: usize = 15;
/// Time limit for an answer to a probe.
const BOUND: Duration = Duration::from_secs(2);
/// Time that the gateway gets to accept the watchers' connections.
const SETTLE: Duration = Duration::from_secs(1);

/// Opens 300 event streams at `target`. Returns the fraction of 15 probes of `/livez` that were
/// answered, the same fraction for `/metrics`, and whether `bywash bypass on` worked (1 or 0).
pub(super) fn measure(target: &Target) -> io::Result<Vec<f64>> {
    let link = target.operator(&["console", "--read-only"])?;
    let link = String::from_utf8_lossy(&link.stdout).trim().to_owned();
    let (_, token) = link
        .split_once("#/login/")
        .ok_or_else(|| io::Error::other(format!("`bywash console` printed no link: {link:?}")))?;
    let port = target.ports().admin;
    let watch = format!(
        "GET /v1/events HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}\r\n\r\n"
    );
    let mut watchers = Vec::new();
    for _ in 0..WATCHERS {
        let mut stream = client_socket::connect_from(Ipv4Addr::LOCALHOST, port)?;
        // If the connection was closed at once, the gateway has refused the watcher.
        let _ = stream.write_all(watch.as_bytes());
        watchers.push(stream);
    }
    thread::sleep(SETTLE);
    let share = |path: &str| {
        let good = (0..PROBES).filter(|_| probe(port, path).is_ok()).count();
        good as f64 / PROBES as f64
    };
    let (livez, metrics) = (share("/livez"), share("/metrics"));
    let bypass = target.operator(&["bypass", "on", "--for", "1m", "--why", "a measurement"])?;
    eprintln!("  {} of {WATCHERS} watchers are served", count_served(&watchers));
    Ok(vec![livez, metrics, if bypass.status.success() { 1.0 } else { 0.0 }])
}

fn probe(port: u16, path: &str) -> io::Result<()> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(BOUND))?;
    let request =
        format!("GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes())?;
    http::expect_200(&mut stream).map(drop)
}

fn count_served(watchers: &[TcpStream]) -> usize {
    let is_served = |mut stream: &TcpStream| {
        let mut start = [0; 13];
        stream.set_nonblocking(true).is_ok()
            && stream.read(&mut start).is_ok_and(|count| start[..count].ends_with(b" 200 "))
    };
    watchers.iter().filter(|stream| is_served(stream)).count()
}
