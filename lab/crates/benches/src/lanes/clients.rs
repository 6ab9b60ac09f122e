//! Clients that request elephants (large responses) in a closed loop, and clients that request ants
//! (small responses) at fixed times.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use bywash_harness::http;

use super::Load;

/// Maximum time that a client waits for a response.
const PATIENCE: Duration = Duration::from_secs(20);
/// Time for which elephants fill the line before the first ant is requested.
const HEAD_START: Duration = Duration::from_secs(2);

/// Number of ants that are requested in turn with elephants on one connection.
const PAIRS: usize = 5;

/// A server to send requests to, and its protocol.
#[derive(Debug, Clone, Copy)]
pub(super) struct Server {
    pub(super) address: SocketAddr,
    /// Whether to send HTTP requests, and expect a response head before the body. Otherwise a
    /// request is one byte, and the response has no head.
    pub(super) speaks_http: bool,
}

/// The results of all clients in one run.
#[derive(Debug, Clone)]
pub struct Seen {
    /// Response times of the answered ants in milliseconds, from when each was due to the complete
    /// response.
    pub ants: Vec<f64>,
    /// Number of ants without a complete response.
    pub failed: usize,
    /// Throughput of all elephants together while ants were requested, in Mbit/s.
    pub elephants: f64,
}

/// Requests elephants and ants from `server` and returns the results. `elephants` is the number of
/// connections that request elephants. The calling thread must be in the clients' network
/// namespace.
pub(super) fn run(server: Server, elephants: usize, load: &Load) -> io::Result<Seen> {
    let begin = Instant::now() + HEAD_START;
    let end = begin + load.length;
    let (ants, bytes) = (Mutex::new(Vec::new()), AtomicU64::new(0));
    let count = f64::from(load.ants) * load.length.as_secs_f64();
    let ended = thread::scope(|scope| {
        let elephants: Vec<_> = (0..elephants)
            .map(|_| scope.spawn(|| elephant(server, (begin, end), load, &bytes)))
            .collect();
        for number in 0..count as u32 {
            let due = begin + Duration::from_secs(1) * number / load.ants;
            thread::sleep(due.saturating_duration_since(Instant::now()));
            let ants = &ants;
            scope.spawn(move || {
                let answered =
                    request_ant(server, load).map(|()| due.elapsed().as_secs_f64() * 1e3);
                ants.lock().expect("no ant's thread panics").push(answered.ok());
            });
        }
        elephants.into_iter().try_for_each(|one| one.join().expect("no elephant's thread panics"))
    });
    ended?;
    let all = ants.into_inner().expect("no ant's thread panics");
    let ants: Vec<f64> = all.iter().filter_map(|ant| *ant).collect();
    let elephants = bytes.into_inner() as f64 * 8.0 / 1e6 / load.length.as_secs_f64();
    Ok(Seen { failed: all.len() - ants.len(), ants, elephants })
}

/// Requests elephants and ants in turn on one connection, and returns the response times of the
/// ants in milliseconds. The first pair is a warm-up.
pub(super) fn in_turn(server: Server, load: &Load) -> io::Result<Vec<f64>> {
    let mut connection = Connection::open(server)?;
    let (mut elephant, mut ant) = (vec![0; load.elephant_bytes], vec![0; load.ant_bytes]);
    let mut pair = || {
        connection.ask("e")?;
        connection.reader.read_exact(&mut elephant)?;
        let asked = Instant::now();
        connection.ask("a")?;
        connection.reader.read_exact(&mut ant)?;
        Ok(asked.elapsed().as_secs_f64() * 1e3)
    };
    (0..=PAIRS).map(|_| pair()).skip(1).collect()
}

fn request_ant(server: Server, load: &Load) -> io::Result<()> {
    let mut connection = Connection::open(server)?;
    connection.ask("a")?;
    connection.reader.read_exact(&mut vec![0; load.ant_bytes])
}

/// Requests elephants in a loop until `end`, and counts the bytes that arrive from `begin` on.
fn elephant(
    server: Server,
    (begin, end): (Instant, Instant),
    load: &Load,
    bytes: &AtomicU64,
) -> io::Result<()> {
    let mut connection = Connection::open(server)?;
    let mut chunk = vec![0; 64 << 10];
    loop {
        connection.ask("e")?;
        let mut left = load.elephant_bytes;
        while left > 0 {
            let most = left.min(chunk.len());
            let read = connection.reader.read(&mut chunk[..most])?;
            let now = Instant::now();
            if read == 0 || now >= end {
                return Ok(());
            }
            left -= read;
            if now >= begin {
                bytes.fetch_add(read as u64, Relaxed);
            }
        }
    }
}

struct Connection {
    reader: BufReader<TcpStream>,
    speaks_http: bool,
}

impl Connection {
    fn open(server: Server) -> io::Result<Self> {
        let stream = TcpStream::connect_timeout(&server.address, PATIENCE)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        Ok(Self { reader: BufReader::new(stream), speaks_http: server.speaks_http })
    }

    /// Sends a request for `what`: `e` for the large response (an elephant), `a` for the small one
    /// (an ant). Reads the head of the response, and leaves the body to the caller.
    fn ask(&mut self, what: &str) -> io::Result<()> {
        if !self.speaks_http {
            return self.reader.get_mut().write_all(what.as_bytes());
        }
        self.reader.get_mut().write_all(http::get(&format!("/{what}")).as_bytes())?;
        let (mut line, mut is_first) = (String::new(), true);
        while line != "\r\n" {
            line.clear();
            if self.reader.read_line(&mut line)? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            if std::mem::take(&mut is_first) && !line.starts_with("HTTP/1.1 200 ") {
                return Err(io::Error::other(line));
            }
        }
        Ok(())
    }
}
