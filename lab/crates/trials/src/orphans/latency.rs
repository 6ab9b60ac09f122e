//! Measures the time from when a client closes its connection to the gateway until the
//! application's query returns as cancelled.

use std::io::{self, Write};
use std::net::TcpStream;
use std::path::Path;
use std::time::Duration;

use bywash_harness::stats::percentile;
use bywash_harness::table::Table;
use serde_json::{Value, json};

use super::app::{App, AppListener};
use super::database::{Connection, DatabaseKind, End, QueryKind};
use super::pooled::Pooled;
use super::test_bed::{DaemonSettings, TestBed};
use crate::ghost::client::{Leave, leave};

/// Number of idle database connections, as in an application's pool.
const IDLE: usize = 100;
/// Minimum delay before the client leaves, so that the query has begun in the database. A database
/// may not react while it prepares a query; for example, PostgreSQL compiles a query that it
/// expects to be slow.
const BEGINS: Duration = Duration::from_millis(3);
/// Length of the time after [`BEGINS`] in which the client leaves, at a different moment in each
/// round.
const SPREAD: Duration = Duration::from_millis(50);

/// Measures each kind of query with each way to leave, and adds a row for each to `table`. Returns
/// the results as JSON.
///
/// # Errors
///
/// Fails if a part cannot be started, or if a query was not cancelled.
pub fn measure(
    program: &Path,
    kind: DatabaseKind,
    rounds: usize,
    table: &mut Table,
) -> io::Result<Vec<Value>> {
    let idle = (0..IDLE).map(|_| Connection::open(kind)).collect::<io::Result<Vec<_>>>();
    // PostgreSQL accepts 100 connections in total, so fewer can be idle.
    let idle = match idle {
        Ok(all) => all,
        Err(_) => (0..IDLE - 20).map(|_| Connection::open(kind)).collect::<io::Result<Vec<_>>>()?,
    };
    let mut results = Vec::new();
    for query_kind in [QueryKind::Waits, QueryKind::Works] {
        let listener = AppListener::open()?;
        let settings =
            DaemonSettings { database: kind, query_tags: false, statements_per_second: 100_000 };
        let test_bed = TestBed::start(program, settings, listener.port()?)?;
        test_bed.wait_database()?;
        let app =
            listener.serve(Pooled::open(kind, &test_bed)?, kind.query(query_kind, 20_000.0))?;
        for how in [Leave::Fin, Leave::Rst] {
            let times = (0..rounds)
                .map(|number| round(&test_bed, &app, how, number))
                .collect::<io::Result<Vec<f64>>>()?;
            let at = |share| percentile(&times, share).unwrap_or(f64::NAN);
            let doing = if query_kind == QueryKind::Waits { "waits" } else { "works" };
            let way = if how == Leave::Fin { "FIN" } else { "RST" };
            let quantiles = [0.5, 0.9, 0.99, 1.0].map(at);
            let mut row = vec![kind.name().to_owned(), doing.to_owned(), way.to_owned()];
            row.extend(quantiles.iter().map(|time| format!("{time:.2}")));
            row.push(format!("{rounds} of {rounds}"));
            table.row(row);
            results.push(json!({
                "database": kind.name(), "query": doing, "way": way, "rounds": rounds, "idle": idle.len(),
                "p50_ms": quantiles[0], "p90_ms": quantiles[1], "p99_ms": quantiles[2], "max_ms": quantiles[3],
            }));
        }
    }
    Ok(results)
}

/// Returns the table for the results, with its header and no row.
pub fn head() -> Table {
    Table::new(3, &["database", "query", "way", "p50 ms", "p90", "p99", "max", "cancelled"])
}

/// Sends a request whose client leaves in the way `how`. Returns the time from the departure until
/// the request's query returned as cancelled, in milliseconds.
fn round(test_bed: &TestBed, app: &App, how: Leave, number: usize) -> io::Result<f64> {
    let mut client = TcpStream::connect(("127.0.0.1", test_bed.port))?;
    client.write_all(b"GET /search HTTP/1.1\r\nHost: shop.example\r\n\r\n")?;
    app.begun()?;
    // The delays are in a scattered order.
    std::thread::sleep(BEGINS + SPREAD * (number * 7919 % 1009) as u32 / 1009);
    let (left, _) = leave(client, how)?;
    match app.ended()? {
        (ended, End::Cancelled) => Ok(ended.duration_since(left).as_secs_f64() * 1000.0),
        (_, other) => Err(io::Error::other(format!("the query was not cancelled: {other:?}"))),
    }
}
