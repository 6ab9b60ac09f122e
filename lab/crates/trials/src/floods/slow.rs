//! Slow heads (slowloris): thousands of connections whose request head arrives at one byte per
//! second.
//!
//! Other clients send requests in a steady open loop before the flood and during it, half of them
//! on new connections. The ratio of their goodput during the flood to that before it shows the cost
//! of the flood.

use bywash_harness::client_socket;
use bywash_harness::machine::PROXY_CORE;
use bywash_harness::open_loop::{self, Load, Phase, Reuse};
use bywash_harness::peer::{PeerKind, Programs, Setup, Task};
use bywash_harness::proxy::Plan;
use bywash_harness::report::{Report, not_available};
use bywash_harness::sys::Epoll;
use bywash_harness::table::Table;
use bywash_harness::upstream::Upstream;
use serde_json::{Value, json};
use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// Promised maximum lifetime of a connection with a slow head.
const GONE: Duration = Duration::from_secs(10);
/// Tolerance of [`GONE`], for the tick of a timer and for the time that ten thousand closes take.
const SLACK: Duration = Duration::from_millis(500);
/// Promised minimum ratio of the other clients' goodput during the flood to their goodput before
/// it.
const UNCHANGED: f64 = 0.99;
/// Total requests per second of the other clients.
const RATE: f64 = 200.0;
/// Time that the other clients wait for an answer.
const PATIENCE: Duration = Duration::from_secs(1);
/// Time for which the other clients run before the flood, including a first second that is not
/// counted.
const BEFORE: Duration = Duration::from_secs(6);
const UNCOUNTED: Duration = Duration::from_secs(1);
/// Time after which the trial ends, and a slow connection that is still open counts as never
/// closed.
const BOUND: Duration = Duration::from_secs(20);
/// Number of slow connections from each source address.
const EACH: usize = 200;
/// Length of a tick. In each tick, one slow connection in a hundred is opened, and one in a hundred
/// gets its next byte.
const TICK: Duration = Duration::from_millis(10);
const TICKS: usize = 100;
/// Number of descriptors reserved for purposes other than connections.
const SPARE: u64 = 500;

const HEAD: &[u8] = b"GET / HTTP/1.1\r\nHost: bench.test\r\nX-Slow: ";

/// The result of a flood against one program.
struct Row {
    kind: PeerKind,
    connections: usize,
    /// Lifetime of each slow connection that has ended.
    lasted: Vec<Duration>,
    /// Time from the first connect to the last close, or to the end of the trial if some
    /// connections stayed open.
    last: Duration,
    /// Fractions of the other clients' requests that were served: before the flood, and during it.
    goodput: [f64; 2],
    /// 99th percentiles of the other clients' response times in µs: before the flood, and during
    /// it.
    p99: [Option<f64>; 2],
    /// Delay of the other clients' load generator during the flood, formatted for the table.
    late: String,
}

/// Measures each program of `kinds` with this many slow connections, or with fewer if `descriptors`
/// (the limit of open descriptors) does not allow that many.
pub(super) fn measure(
    kinds: &[PeerKind],
    programs: &Programs,
    connections: u32,
    descriptors: u64,
) -> io::Result<Report> {
    let mut rows = Vec::new();
    for &kind in kinds {
        // HAProxy needs descriptors for both sides of every connection that it may accept.
        let sides = if kind == PeerKind::Haproxy { 2 } else { 1 };
        let most = (descriptors.saturating_sub(2 * SPARE) / sides) as u32 - SPARE as u32;
        let count = connections.min(most);
        eprintln!("slow: {kind}, {count} connections");
        let setup = Setup { connections: count + SPARE as u32, ..Setup::default() };
        let upstream = Upstream::start()?;
        let plan = Plan::new(kind, Task::Forward { limit: 1024 }, upstream.port(), programs);
        match (Plan { setup, core: Some(PROXY_CORE), ..plan }).start() {
            Ok(proxy) => rows.push(flood(kind, proxy.port(), count as usize)?),
            Err(e) => not_available(&format!("slow, {kind}"), &e.to_string()),
        }
    }
    Ok(report(&rows))
}

fn flood(kind: PeerKind, port: u16, connections: usize) -> io::Result<Row> {
    let phases = vec![Phase::new(RATE, BEFORE + BOUND)];
    let load = Load { port, phases, patience: PATIENCE, reuse: Reuse::Half, sources: 0..0 };
    let running = load.start();
    running.wait_until(BEFORE);
    let begun = running.elapsed();
    let mut clients = SlowClients::new()?;
    clients.drip(port, connections)?;
    let last = running.elapsed();
    drop(clients.clients);
    let answers = running.finish()?;
    let [alone, meanwhile] =
        [(UNCOUNTED, begun), (begun, last)].map(|(from, to)| open_loop::within(&answers, from, to));
    let share = |answers: &[_]| open_loop::goodput(answers).unwrap_or_default();
    Ok(Row {
        kind,
        connections,
        lasted: clients.lasted,
        last: last.saturating_sub(begun),
        goodput: [share(&alone), share(&meanwhile)],
        p99: [&alone, &meanwhile].map(|answers| open_loop::percentile_us(answers, 0.99)),
        late: open_loop::show_late_ms(&meanwhile),
    })
}

/// The clients with slow heads.
struct SlowClients {
    epoll: Epoll,
    clients: Vec<Option<(TcpStream, Instant)>>,
    lasted: Vec<Duration>,
}

impl SlowClients {
    fn new() -> io::Result<Self> {
        Ok(Self { epoll: Epoll::new(1024)?, clients: Vec::new(), lasted: Vec::new() })
    }

    /// Opens the connections within a second. Then sends their bytes until all are closed or
    /// [`BOUND`] is over.
    fn drip(&mut self, port: u16, connections: usize) -> io::Result<()> {
        let (start, mut ready) = (Instant::now(), Vec::new());
        for tick in 0.. {
            self.open(port, connections.div_ceil(TICKS), connections)?;
            if self.lasted.len() == connections || start.elapsed() > BOUND {
                return Ok(());
            }
            for (stream, _) in self.clients.iter().skip(tick % TICKS).step_by(TICKS).flatten() {
                // If the write fails, the reading below detects the close.
                let _ = (&*stream).write(b"a");
            }
            // Closed connections must be detected even if the tick is late.
            let due = TICK * (tick as u32 + 1);
            while {
                let left = due.saturating_sub(start.elapsed());
                self.epoll.wait_for(left, &mut ready)?;
                for &n in &ready {
                    self.look(n);
                }
                start.elapsed() < due
            } {}
        }
        Ok(())
    }

    fn open(&mut self, port: u16, more: usize, most: usize) -> io::Result<()> {
        for n in self.clients.len()..most.min(self.clients.len() + more) {
            let stream = client_socket::begin_connect(client_socket::address(n / EACH), port)?;
            self.epoll.add(&stream, n)?;
            // A client that is not connected yet loses these bytes, and sends only the later ones.
            // The proxy then closes the connection as soon as the bytes are not a valid head, which
            // is not harder for the proxy.
            let _ = (&stream).write(HEAD);
            self.clients.push(Some((stream, Instant::now())));
        }
        Ok(())
    }

    /// Reads any bytes from the proxy on connection `n`, and records the end of the connection.
    fn look(&mut self, n: usize) {
        let Some((stream, opened)) = &self.clients[n] else { return };
        let gone = loop {
            match (&*stream).read(&mut [0; 1024]) {
                Ok(0) => break true,
                Ok(_) => {}
                Err(e) => break e.kind() != ErrorKind::WouldBlock,
            }
        };
        if gone {
            self.lasted.push(opened.elapsed());
            self.clients[n] = None;
        }
    }
}

fn report(rows: &[Row]) -> Report {
    let head = [
        "proxy",
        "slow",
        "gone",
        "last after s",
        "goodput alone",
        "meanwhile",
        "ratio",
        "p99 alone µs",
        "meanwhile",
        "load late ms",
    ];
    let (mut table, mut list) = (Table::new(1, &head), Vec::new());
    for row in rows {
        let [alone, meanwhile] = row.goodput;
        let p99 = row.p99.map(|p99| p99.map_or("-".to_owned(), |us| format!("{us:.0}")));
        let [p99_alone, p99_meanwhile] = p99;
        table.row(vec![
            row.kind.to_string(),
            row.connections.to_string(),
            row.lasted.len().to_string(),
            row.last_s().map_or("-".into(), |s| format!("{s:.1}")),
            format!("{alone:.4}"),
            format!("{meanwhile:.4}"),
            format!("{:.4}", meanwhile / alone),
            p99_alone,
            p99_meanwhile,
            row.late.clone(),
        ]);
        list.push(row.json());
    }
    let method = format!(
        "Connections that send their head at a byte per second, {EACH} per address. last after: \
         from the opening of the first to the\nend of the last, for at most {} s. goodput: share \
         of requests answered with 200 within {} s, out of {RATE:.0} requests/s\nevenly spaced, \
         half on new connections.",
        BOUND.as_secs(),
        PATIENCE.as_secs()
    );
    let own = rows.iter().filter(|row| row.kind == PeerKind::Bywash);
    let broken = own.flat_map(Row::broken).collect();
    Report { table, method, json: json!({ "slow": list }), broken }
}

impl Row {
    /// Returns the seconds until the last slow connection was closed; `None` if some stayed open.
    fn last_s(&self) -> Option<f64> {
        (self.lasted.len() == self.connections).then_some(self.last.as_secs_f64())
    }

    /// Returns the longest lifetime of a slow connection that was closed.
    fn longest(&self) -> Duration {
        self.lasted.iter().copied().max().unwrap_or_default()
    }

    fn json(&self) -> Value {
        json!({
            "proxy": self.kind.to_string(), "connections": self.connections,
            "gone": self.lasted.len(), "last_after_s": self.last_s(),
            "longest_s": self.longest().as_secs_f64(), "goodput_alone": self.goodput[0],
            "goodput_meanwhile": self.goodput[1], "p99_alone_us": self.p99[0],
            "p99_meanwhile_us": self.p99[1],
        })
    }

    fn broken(&self) -> Vec<String> {
        let left = self.connections - self.lasted.len();
        let ratio = self.goodput[1] / self.goodput[0];
        let longest = self.longest();
        [
            (left > 0, format!("slow heads: {left} connections were not closed")),
            (
                longest > GONE + SLACK,
                format!("slow heads: one connection stayed open for {longest:.1?}"),
            ),
            (
                ratio < UNCHANGED,
                format!(
                    "slow heads: the goodput of other clients falls to {ratio:.3} of that before"
                ),
            ),
        ]
        .into_iter()
        .filter_map(|(is_broken, promise)| is_broken.then_some(promise))
        .collect()
    }
}
