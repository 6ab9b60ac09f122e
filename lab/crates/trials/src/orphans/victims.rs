//! Measures how often the stop of a request cancels the query of another request. Two requests run
//! in turn on each pooled connection, and the stop of the first one may come at any moment.

use std::io;
use std::path::Path;
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use bywash_harness::table::Table;
use serde_json::{Value, json};

use super::database::{DatabaseKind, End, QueryKind};
use super::pooled::Pooled;
use super::test_bed::{DaemonSettings, TestBed};

/// The way in which the daemon attributes queries to requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attribution {
    /// The application leases the connection for the request.
    Lease,
    /// A comment in front of the query names the request.
    QueryTag,
}

/// Length of each query, in milliseconds.
const QUERY: f64 = 2.0;
/// Maximum delay from the start of a query to its stop. It is one and a half times the length of
/// the query, so some stops come after the query's end.
const SPREAD: Duration = Duration::from_millis(3);

/// The counted outcomes of a series of rounds.
#[derive(Clone, Copy, Debug, Default)]
pub struct Count {
    /// Total number of rounds.
    pub rounds: usize,
    /// Number of rounds in which the stopped request's query was cancelled.
    pub right: usize,
    /// Number of rounds in which the query of the other request was cancelled.
    pub wrong: usize,
    /// Number of rounds in which the stop came too late to cancel the stopped request's query.
    pub none: usize,
    /// Number of connections that were closed because their cancellation was not over in time.
    pub closed: usize,
}

/// Returns the table for the results, with its header and no row.
pub fn head() -> Table {
    Table::new(
        2,
        &["database", "known by", "connections", "rounds", "right", "too late", "closed", "wrong"],
    )
}

/// Runs `rounds` rounds, spread evenly over `connections` connections, and adds a row to `table`.
/// Returns the counts, and the result as JSON.
///
/// # Errors
///
/// Fails if a part cannot be started or does not answer.
pub fn measure(
    program: &Path,
    kind: DatabaseKind,
    attribution: Attribution,
    rounds: usize,
    connections: usize,
    table: &mut Table,
) -> io::Result<(Count, Value)> {
    let settings = DaemonSettings {
        database: kind,
        query_tags: attribution == Attribution::QueryTag,
        statements_per_second: 100_000,
    };
    // Port 9 stands for an upstream that is not used: no trial sends requests to the gateway.
    let test_bed = TestBed::start(program, settings, 9)?;
    test_bed.wait_database()?;
    let count = play(&test_bed, kind, attribution, rounds, connections)?;
    let word = if attribution == Attribution::Lease { "lease" } else { "query tag" };
    let mut row = vec![kind.name().to_owned(), word.to_owned()];
    row.extend(
        [connections, count.rounds, count.right, count.none, count.closed, count.wrong]
            .map(|number| number.to_string()),
    );
    table.row(row);
    let result = json!({
        "database": kind.name(), "known_by": word, "connections": connections, "rounds": count.rounds,
        "right": count.right, "none": count.none, "closed": count.closed, "wrong": count.wrong,
    });
    Ok((count, result))
}

fn play(
    test_bed: &TestBed,
    kind: DatabaseKind,
    attribution: Attribution,
    rounds: usize,
    connections: usize,
) -> io::Result<Count> {
    std::thread::scope(|scope| {
        let lanes: Vec<_> = (0..connections)
            .map(|lane| {
                let share = rounds / connections + usize::from(lane < rounds % connections);
                scope.spawn(move || play_lane(test_bed, kind, attribution, lane, share))
            })
            .collect();
        lanes.into_iter().try_fold(Count::default(), |all, lane| {
            let one = lane
                .join()
                .map_err(|_| io::Error::other("the thread of a connection panicked"))??;
            Ok(Count {
                rounds: all.rounds + one.rounds,
                right: all.right + one.right,
                wrong: all.wrong + one.wrong,
                none: all.none + one.none,
                closed: all.closed + one.closed,
            })
        })
    })
}

/// Runs the rounds of connection `number` and counts their outcomes.
fn play_lane(
    test_bed: &TestBed,
    kind: DatabaseKind,
    attribution: Attribution,
    number: usize,
    rounds: usize,
) -> io::Result<Count> {
    let mut connection = Pooled::open(kind, test_bed)?;
    let query = kind.query(QueryKind::Waits, QUERY);
    let mut run = |name: &str| match attribution {
        Attribution::QueryTag => {
            Ok(connection.unleased().run(&format!("/*bywash-request='{name}'*/ {query}")))
        }
        // A request that was stopped before it began counts as cancelled.
        Attribution::Lease => connection
            .leased(name, |connection| connection.run(&query))
            .map(|end| end.unwrap_or(End::Cancelled)),
    };
    let mut gateway = test_bed.connect_daemon()?;
    let (stops, wanted) = sync_channel::<(String, Duration)>(1);
    let (answers, answered) = sync_channel(1);
    // Stops run in their own thread, because the gateway does not wait for the application.
    std::thread::Builder::new().name("stops".into()).spawn(move || {
        for (name, pause) in wanted {
            std::thread::sleep(pause);
            let _ = answers.send(gateway.ask(&format!("STOP {name} client_left")).map(drop));
        }
    })?;
    let mut count = Count { rounds, ..Count::default() };
    for round in 0..rounds {
        let (victim, innocent) = (format!("a{number}-{round}"), format!("b{number}-{round}"));
        // The delays are in a scattered order, which is unrelated to the length of the query.
        let share = (round * 7919 % 1009) as u32;
        stops.send((victim.clone(), SPREAD * share / 1009)).map_err(io::Error::other)?;
        match run(&victim)? {
            End::Cancelled => count.right += 1,
            End::Done => count.none += 1,
            End::Failed(why) => return Err(io::Error::other(why)),
        }
        if run(&innocent)? != End::Done {
            count.wrong += 1;
        }
        answered.recv().map_err(io::Error::other)??;
    }
    Ok(Count { closed: connection.closed, ..count })
}
