//! `cost memory`: the memory that a proxy uses for an idle connection and for a waiting request.
//!
//! The program under test is restarted for each measurement. Its memory (PSS, `proc_pid_smaps(5)`)
//! is read after a few requests, and again with all connections. The difference is divided by the
//! number of connections. Afterwards the waiting requests are released. Each of them must be
//! answered, because a dropped request would have used no memory.

use bywash_harness::client_socket;
use bywash_harness::http;
use bywash_harness::machine::{LOAD_CORE, PROXY_CORE};
use bywash_harness::peer::{PeerKind, Programs, Setup, Task};
use bywash_harness::procfs;
use bywash_harness::proxy::{Plan, Proxy};
use bywash_harness::report::{Bench, Common, Report, not_available};
use bywash_harness::sys;
use bywash_harness::table::Table;
use bywash_harness::upstream::Upstream;
use serde_json::json;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

/// Number of connections and programs
#[derive(Debug, clap::Args)]
pub struct Options {
    #[command(flatten)]
    common: Common,
    /// Number of connections, at most half of the descriptors of this process
    #[arg(long, default_value_t = 9000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    connections: u32,
    /// Measure only this program; may be repeated
    #[arg(long, value_enum)]
    only: Vec<PeerKind>,
}

/// Number of descriptors that a process needs in addition to those of its connections.
const SPARE: u64 = 500;
/// Promised maximum of bywash's memory for an idle connection, in bytes.
const IDLE_MOST: f64 = 14.0 * 1024.0;
/// Promised maximum of bywash's memory for a waiting request, in bytes.
const QUEUED_MOST: f64 = 18.0 * 1024.0;
/// Number of requests before the first reading.
const WARM_UP: usize = 100;
/// Time that a proxy gets to handle the bytes that it has received.
const SETTLE: Duration = Duration::from_secs(1);
/// Time limit for the answer to a single request.
const BOUND: Duration = Duration::from_secs(30);

/// Time limit for the answers to all waiting requests together.
const ALL_ANSWERED: Duration = Duration::from_secs(60);

/// The result of one program.
struct Row {
    kind: PeerKind,
    base: u64,
    /// Memory per idle connection, in bytes.
    idle: f64,
    /// The result for waiting requests; `None` for a program without a queue.
    queued: Option<Queued>,
}

struct Queued {
    /// Memory per waiting request, in bytes.
    each: f64,
    /// Number of waiting requests that were answered with 200 after the slot became free.
    answered: usize,
    /// Time from when the slot became free until the last waiting request was answered.
    took: Duration,
}

/// Measures all selected programs and publishes the report.
pub fn run(options: &Options) -> io::Result<ExitCode> {
    let most = (sys::raise_descriptor_limit()?.saturating_sub(SPARE) / 2) as u32;
    let count = options.connections.min(most);
    let kinds = if options.only.is_empty() { &PeerKind::ALL[..] } else { &options.only };
    let bench = Bench::set(kinds, &options.common.programs);
    sys::pin_to(LOAD_CORE)?;
    let mut rows = Vec::new();
    for kind in bench.kinds() {
        eprintln!("memory: {kind}");
        match measure(kind, count, &options.common.programs) {
            Ok(row) => rows.push(row),
            Err(e) => not_available(&kind.to_string(), &e.to_string()),
        }
    }
    bench.publish(&[report(&rows, count)], &options.common)
}

fn measure(kind: PeerKind, count: u32, programs: &Programs) -> io::Result<Row> {
    let upstream = Upstream::start()?;
    let setup =
        Setup { connections: count + SPARE as u32, waiting: Some(count), ..Setup::default() };
    let plan = |limit| Plan {
        setup: setup.clone(),
        core: Some(PROXY_CORE),
        ..Plan::new(kind, Task::Forward { limit }, upstream.port(), programs)
    };
    let (base, idle) = idle(&plan(1024).start()?, count)?;
    let queued = match kind {
        PeerKind::Nginx => None,
        PeerKind::Bywash | PeerKind::Haproxy | PeerKind::Envoy => {
            Some(queued(&plan(1).start()?, &upstream, count)?)
        }
    };
    Ok(Row { kind, base, idle, queued })
}

fn idle(proxy: &Proxy, count: u32) -> io::Result<(u64, f64)> {
    let base = warm(proxy)?;
    let mut connections = Vec::new();
    for n in 0..count {
        let mut stream = connect(proxy, n)?;
        ask(&mut stream, "/item")?;
        http::expect_200(&mut stream)?;
        connections.push(stream);
    }
    thread::sleep(SETTLE);
    let each = share(procfs::memory(proxy.pid())?, base, count);
    for stream in &connections {
        stream.set_nonblocking(true)?;
        let kept =
            matches!((&*stream).read(&mut [0]), Err(e) if e.kind() == io::ErrorKind::WouldBlock);
        if !kept {
            return Err(io::Error::other(format!("{} closed an idle connection", proxy.kind())));
        }
    }
    Ok((base, each))
}

fn queued(proxy: &Proxy, upstream: &Upstream, count: u32) -> io::Result<Queued> {
    let base = warm(proxy)?;
    let mut holder = connect(proxy, 0)?;
    ask(&mut holder, "/hold")?;
    thread::sleep(SETTLE);
    let before = upstream.requests();
    let mut waiting = Vec::new();
    for n in 0..count {
        let mut stream = connect(proxy, n)?;
        ask(&mut stream, "/item")?;
        waiting.push(stream);
    }
    thread::sleep(SETTLE);
    if upstream.requests() != before {
        return Err(io::Error::other(format!("{}: a request was not queued", proxy.kind())));
    }
    let each = share(procfs::memory(proxy.pid())?, base, count);
    drop(holder);
    let start = Instant::now();
    let in_time = waiting.iter_mut().take_while(|_| start.elapsed() < ALL_ANSWERED);
    let answered = in_time.filter_map(|stream| http::expect_200(stream).ok()).count();
    Ok(Queued { each, answered, took: start.elapsed() })
}

/// Returns the proxy's memory in bytes after [`WARM_UP`] sequential requests.
fn warm(proxy: &Proxy) -> io::Result<u64> {
    let mut stream = connect(proxy, 0)?;
    for _ in 0..WARM_UP {
        ask(&mut stream, "/item")?;
        http::expect_200(&mut stream)?;
    }
    procfs::memory(proxy.pid())
}

fn share(now: u64, base: u64, count: u32) -> f64 {
    now.saturating_sub(base) as f64 / f64::from(count)
}

fn connect(proxy: &Proxy, n: u32) -> io::Result<TcpStream> {
    let stream = client_socket::connect_from(client_socket::address(n as usize % 8), proxy.port())?;
    stream.set_read_timeout(Some(BOUND))?;
    Ok(stream)
}

fn ask(stream: &mut TcpStream, path: &str) -> io::Result<()> {
    stream.write_all(http::get(path).as_bytes())
}

fn report(rows: &[Row], count: u32) -> Report {
    let head = ["proxy", "alone MiB", "idle KiB", "queued KiB", "answered", "in s"];
    let (mut table, mut list) = (Table::new(1, &head), Vec::new());
    for row in rows {
        let queued = row.queued.as_ref();
        let show = |cell: &dyn Fn(&Queued) -> String| queued.map_or("-".into(), cell);
        table.row(vec![
            row.kind.to_string(),
            format!("{:.1}", row.base as f64 / 1024.0 / 1024.0),
            format!("{:.1}", row.idle / 1024.0),
            show(&|queued| format!("{:.1}", queued.each / 1024.0)),
            show(&|queued| format!("{} of {count}", queued.answered)),
            show(&|queued| format!("{:.1}", queued.took.as_secs_f64())),
        ]);
        list.push(json!({
            "proxy": row.kind.to_string(), "alone_bytes": row.base, "idle_bytes": row.idle,
            "queued_bytes": queued.map(|queued| queued.each),
            "answered": queued.map(|queued| queued.answered),
            "answered_in_s": queued.map(|queued| queued.took.as_secs_f64()),
        }));
    }
    let method = format!(
        "PSS of the process. alone: after {WARM_UP} requests. idle: growth for each of {count} \
         keep-alive connections that have\nhad an answer. queued: growth for each of {count} \
         requests that wait, each on its own connection. answered: how many of\nthese got 200 once \
         the slot was free."
    );
    let json = json!({ "connections": count, "proxies": list });
    let own = rows.iter().filter(|row| row.kind == PeerKind::Bywash);
    Report { table, method, json, broken: own.flat_map(|row| broken(row, count)).collect() }
}

/// Describes the promises that bywash has broken in `row`; empty for other programs.
fn broken(row: &Row, count: u32) -> Vec<String> {
    let mut broken = Vec::new();
    let mut limit = |what: &str, bytes: f64, most: f64| {
        if bytes > most {
            let (kib, most) = (bytes / 1024.0, most / 1024.0);
            broken.push(format!("{what}: {kib:.1} KiB, promised at most {most:.0} KiB"));
        }
    };
    limit("an idle connection", row.idle, IDLE_MOST);
    if let Some(queued) = &row.queued {
        limit("a waiting request", queued.each, QUEUED_MOST);
        if queued.answered < count as usize {
            broken.push(format!("{} of {count} waiting requests answered", queued.answered));
        }
    }
    broken
}
