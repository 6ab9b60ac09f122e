//! An attack on the session table: requests with invented cookies. Each of these requests is
//! answered once. The result is the fraction of buyers whose session the gateway still knows when
//! they pay. All buyers logged in before the attack.

use super::honest::VISITORS;
use super::target::Target;
use bywash_harness::client_socket;
use bywash_harness::http;
use serde_json::Value;
use std::fs;
use std::io::{self, Write};
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

/// Size of the gateway's session table, in sessions. The table is small, but the attack sends four
/// times as many sessions as it holds, as an attack on a large table would.
pub(super) const TABLE: u32 = 1000;
const BUYERS: usize = 50;
/// Number of invented sessions in an attack.
const INVENTED: usize = 4 * TABLE as usize;
/// Time limit for an answer, and for lines to appear in the log.
const BOUND: Duration = Duration::from_secs(5);

/// Logs 50 buyers in, sends the invented sessions from `addresses` addresses, and lets the buyers
/// pay. Returns the fraction of buyers that the gateway still knew.
pub(super) fn measure(target: &Target, addresses: usize) -> io::Result<Vec<f64>> {
    let mut buyers = (0..BUYERS)
        .map(|number| connect(client_socket::address(VISITORS.start + number), target.ports().http))
        .collect::<io::Result<Vec<_>>>()?;
    request_all(&mut buyers, "/login")?;
    for address in 0..addresses {
        let mut stream = connect(client_socket::address(address), target.ports().http)?;
        for number in 0..INVENTED / addresses {
            let cookie = format!("Cookie: sid=invented{address}x{number}\r\n");
            let request = format!("GET /item HTTP/1.1\r\nHost: bench.test\r\n{cookie}\r\n");
            stream.write_all(request.as_bytes())?;
            http::read_answer(&mut stream)?;
        }
    }
    request_all(&mut buyers, "/pay")?;
    let lines = paid(target)?;
    let kept = lines.iter().filter(|line| line["standing"] == "transaction").count();
    Ok(vec![kept as f64 / BUYERS as f64])
}

fn connect(source: std::net::Ipv4Addr, port: u16) -> io::Result<TcpStream> {
    let stream = client_socket::connect_from(source, port)?;
    stream.set_read_timeout(Some(BOUND))?;
    Ok(stream)
}

fn request_all(buyers: &mut [TcpStream], path: &str) -> io::Result<()> {
    for (number, stream) in buyers.iter_mut().enumerate() {
        let lines = format!("Cookie: sid=buyer{number}\r\nContent-Length: 0\r\n");
        stream.write_all(http::post(path, &lines).as_bytes())?;
        http::read_answer(stream)?;
    }
    Ok(())
}

/// Returns the lines of the access log about payments, once the log has one for each buyer. Fails
/// if the log does not have them in time.
fn paid(target: &Target) -> io::Result<Vec<Value>> {
    let start = Instant::now();
    loop {
        let text = fs::read_to_string(target.access_log())?;
        let lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let paid: Vec<Value> = lines.filter(|line| line["class"] == "pay").collect();
        if paid.len() >= BUYERS {
            return Ok(paid);
        }
        if start.elapsed() > BOUND {
            let count = paid.len();
            return Err(io::Error::other(format!("{count} of {BUYERS} payments are in the log")));
        }
        thread::sleep(Duration::from_millis(20));
    }
}
