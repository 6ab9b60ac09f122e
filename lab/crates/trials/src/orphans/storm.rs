//! A storm of disconnects: thousands of clients reset their connections within a second. Measures
//! the cost to the database and to other clients.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bywash_harness::http;
use bywash_harness::procfs;
use bywash_harness::stats::percentile;
use bywash_harness::sys;
use bywash_harness::table::Table;
use serde_json::{Value, json};

use super::database::{Connection, DatabaseKind, End, QueryKind};
use super::test_bed::{DaemonSettings, TestBed};

/// Length of each of the two observations, without and with a storm.
const WINDOW: Duration = Duration::from_secs(3);
/// Interval between two queries of the other clients, and between two of their requests.
const PACE: Duration = Duration::from_millis(5);

/// The measurements of one [`WINDOW`]. It has the latencies of other clients' queries and requests
/// and the CPU time of the database, all in milliseconds, and the number of statements.
#[derive(Clone, Debug)]
struct Observation {
    queries: Vec<f64>,
    requests: Vec<f64>,
    spent: f64,
    statements: f64,
}

/// Returns the table for the results, with its header and no row.
pub fn head() -> Table {
    let head = [
        "database",
        "",
        "its CPU, ms",
        "statements",
        "query p50 ms",
        "p99",
        "request p50 ms",
        "p99",
    ];
    Table::new(2, &head)
}

/// Observes three seconds without a storm, and three seconds with a storm of `resets` resets. Adds
/// a row for each observation to `table`. Returns the values as JSON.
///
/// # Errors
///
/// Fails if a part cannot be started, or if a query or request of another client fails.
pub fn measure(
    program: &Path,
    kind: DatabaseKind,
    resets: usize,
    table: &mut Table,
) -> io::Result<Value> {
    sys::raise_descriptor_limit()?;
    let app = App::open()?;
    let settings = DaemonSettings { database: kind, query_tags: true, statements_per_second: 100 };
    let test_bed = TestBed::start(program, settings, app.port)?;
    test_bed.wait_database()?;
    let quiet = observe(&test_bed, kind, Vec::new())?;
    let crowd = (0..resets).map(|_| hanging(test_bed.port)).collect::<io::Result<Vec<_>>>()?;
    app.wait_for(resets)?;
    let storm = observe(&test_bed, kind, crowd)?;
    let reported = test_bed.number("bywash_stopd_stops_total{reason=\"client_left\"}")?;
    if reported < resets as f64 {
        return Err(io::Error::other(format!(
            "the gateway reported only {reported} of {resets} departures to the daemon"
        )));
    }
    for (name, observation) in [("quiet", &quiet), ("storm", &storm)] {
        let quantile =
            |times: &[f64], share| format!("{:.2}", percentile(times, share).unwrap_or(f64::NAN));
        table.row(vec![
            kind.name().to_owned(),
            name.to_owned(),
            format!("{:.0}", observation.spent),
            format!("{:.0}", observation.statements),
            quantile(&observation.queries, 0.5),
            quantile(&observation.queries, 0.99),
            quantile(&observation.requests, 0.5),
            quantile(&observation.requests, 0.99),
        ]);
    }
    let value = |observation: &Observation| {
        json!({
            "cpu_ms": observation.spent, "statements": observation.statements,
            "query_p50_ms": percentile(&observation.queries, 0.5), "query_p99_ms": percentile(&observation.queries, 0.99),
            "request_p50_ms": percentile(&observation.requests, 0.5), "request_p99_ms": percentile(&observation.requests, 0.99),
        })
    };
    Ok(
        json!({ "database": kind.name(), "resets": resets, "quiet": value(&quiet), "storm": value(&storm) }),
    )
}

/// Observes other clients for one [`WINDOW`], while `crowd` resets its connections in the first
/// second.
fn observe(
    test_bed: &TestBed,
    kind: DatabaseKind,
    crowd: Vec<TcpStream>,
) -> io::Result<Observation> {
    let statements = || test_bed.number("bywash_stopd_statements_total{database=\"shop\"}");
    let over = Arc::new(AtomicBool::new(false));
    let (before, asked) = (spent(kind)?, statements()?);
    let queries = spawn(&over, queries(kind)?);
    let requests = spawn(&over, requests(test_bed.port));
    let start = Instant::now();
    let count = crowd.len();
    for (index, client) in crowd.into_iter().enumerate() {
        let due = Duration::from_secs(1) * index as u32 / count as u32;
        std::thread::sleep(due.saturating_sub(start.elapsed()));
        sys::reset_on_close(&client)?;
    }
    std::thread::sleep(WINDOW.saturating_sub(start.elapsed()));
    over.store(true, Ordering::Relaxed);
    let join = |thread: std::thread::JoinHandle<io::Result<Vec<f64>>>| {
        thread.join().map_err(|_| io::Error::other("a thread panicked"))?
    };
    let (queries, requests) = (join(queries)?, join(requests)?);
    Ok(Observation {
        queries,
        requests,
        spent: spent(kind)? - before,
        statements: statements()? - asked,
    })
}

type Operation = Box<dyn FnMut() -> io::Result<()> + Send>;

fn spawn(
    over: &Arc<AtomicBool>,
    mut operation: Operation,
) -> std::thread::JoinHandle<io::Result<Vec<f64>>> {
    let over = Arc::clone(over);
    std::thread::spawn(move || {
        let mut times = Vec::new();
        while !over.load(Ordering::Relaxed) {
            let start = Instant::now();
            operation()?;
            times.push(start.elapsed().as_secs_f64() * 1000.0);
            std::thread::sleep(PACE.saturating_sub(start.elapsed()));
        }
        Ok(times)
    })
}

fn queries(kind: DatabaseKind) -> io::Result<Operation> {
    let mut connection = Connection::open(kind)?;
    let query = kind.query(QueryKind::Waits, 0.0);
    Ok(Box::new(move || match connection.run(&query) {
        End::Done => Ok(()),
        other => {
            Err(io::Error::other(format!("a query of another request was not done: {other:?}")))
        }
    }))
}

fn requests(port: u16) -> Operation {
    Box::new(move || {
        let mut client = TcpStream::connect(("127.0.0.1", port))?;
        client
            .write_all(b"GET /page HTTP/1.1\r\nHost: shop.example\r\nConnection: close\r\n\r\n")?;
        http::expect_200(&mut client).map(drop)
    })
}

fn hanging(port: u16) -> io::Result<TcpStream> {
    let mut client = TcpStream::connect(("127.0.0.1", port))?;
    client.write_all(b"GET /search HTTP/1.1\r\nHost: shop.example\r\n\r\n")?;
    Ok(client)
}

/// Returns the total CPU time of the database's processes since their start, in milliseconds.
fn spent(kind: DatabaseKind) -> io::Result<f64> {
    let first = kind.process()?;
    let mut ticks = procfs::cpu_ticks_of_family(first)?;
    for process in procfs::descendants(first)? {
        // The CPU time of a process that has just ended is counted among that of its parent's
        // children.
        if let Ok(more) = procfs::cpu_ticks(process) {
            ticks.user += more.user;
            ticks.system += more.system;
        }
    }
    Ok(procfs::micros(ticks.user + ticks.system) / 1000.0)
}

/// An application that answers `/page` at once and never answers `/search`.
struct App {
    port: u16,
    hang: Arc<std::sync::atomic::AtomicUsize>,
}

impl App {
    fn open() -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let port = listener.local_addr()?.port();
        let hang = Arc::<std::sync::atomic::AtomicUsize>::default();
        let hangs = Arc::clone(&hang);
        std::thread::Builder::new().name("app".into()).spawn(move || {
            let mut kept = Vec::new();
            for mut stream in listener.incoming().flatten() {
                let mut head = [0; 4096];
                let length = stream.read(&mut head).unwrap_or(0);
                if head[..length].starts_with(b"GET /search") {
                    kept.push(stream);
                    hangs.store(kept.len(), Ordering::Relaxed);
                } else {
                    let _ = stream.write_all(
                        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok",
                    );
                }
            }
        })?;
        Ok(Self { port, hang })
    }

    fn wait_for(&self, count: usize) -> io::Result<()> {
        for _ in 0..4000 {
            if self.hang.load(Ordering::Relaxed) >= count {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Err(io::Error::other("not all requests reached the application"))
    }
}
