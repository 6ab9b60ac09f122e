//! Wrong victims: two requests in turn on each of some pooled connections, stops for one of them at any moment.

use std::io;
use std::path::Path;
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use bywash_harness::table::Table;
use serde_json::{Value, json};

use super::database::{End, Kind, QueryKind};
use super::pooled::Pooled;
use super::test_bed::{DaemonSettings, TestBed};

/// How the daemon knows whose a query is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attribution {
    /// The application says so.
    Lease,
    /// It stands in front of the query.
    Mark,
}

/// How long a query takes, in milliseconds.
const QUERY: f64 = 2.0;
/// Stops come from the beginning of the query to half its length after its end.
const SPREAD: Duration = Duration::from_millis(3);

/// What a series of rounds came to.
#[derive(Clone, Copy, Debug, Default)]
pub struct Count {
    /// How many there were.
    pub rounds: usize,
    /// The stopped request's query was cancelled.
    pub right: usize,
    /// Another's was.
    pub wrong: usize,
    /// The stop came too late, and nobody's was.
    pub none: usize,
    /// Connections that had to be closed, as their cancellation was not over at once.
    pub closed: usize,
}

/// The head of the table.
pub fn head() -> Table {
    Table::new(
        2,
        &["database", "known by", "connections", "rounds", "right", "too late", "closed", "wrong"],
    )
}

/// Plays the rounds, evenly on so many connections, and prints. Gives the count, and the result as JSON.
///
/// # Errors
/// If a part fails.
pub fn measure(
    program: &Path,
    kind: Kind,
    attribution: Attribution,
    rounds: usize,
    connections: usize,
    table: &mut Table,
) -> io::Result<(Count, Value)> {
    let settings = DaemonSettings {
        database: kind,
        marks: attribution == Attribution::Mark,
        statements_per_second: 100_000,
    };
    // Nobody asks the gateway for anything here.
    let test_bed = TestBed::start(program, settings, 9)?;
    test_bed.wait_database()?;
    let count = play(&test_bed, kind, attribution, rounds, connections)?;
    let word = if attribution == Attribution::Lease { "lease" } else { "mark" };
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
    kind: Kind,
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

/// Plays the rounds of one connection.
fn play_lane(
    test_bed: &TestBed,
    kind: Kind,
    attribution: Attribution,
    number: usize,
    rounds: usize,
) -> io::Result<Count> {
    let mut connection = Pooled::open(kind, test_bed)?;
    let query = kind.query(QueryKind::Waits, QUERY);
    let mut run = |name: &str| match attribution {
        Attribution::Mark => {
            Ok(connection.unleased().run(&format!("/*bywash-request='{name}'*/ {query}")))
        }
        // One that was stopped before it began is as good as cancelled.
        Attribution::Lease => connection
            .leased(name, |connection| connection.run(&query))
            .map(|end| end.unwrap_or(End::Cancelled)),
    };
    let mut gateway = test_bed.connect_daemon()?;
    let (stops, wanted) = sync_channel::<(String, Duration)>(1);
    let (answers, answered) = sync_channel(1);
    // The other side of the site: it does not wait for us.
    std::thread::Builder::new().name("stops".into()).spawn(move || {
        for (name, pause) in wanted {
            std::thread::sleep(pause);
            let _ = answers.send(gateway.ask(&format!("STOP {name} client_left")).map(drop));
        }
    })?;
    let mut count = Count { rounds, ..Count::default() };
    for round in 0..rounds {
        let (victim, innocent) = (format!("a{number}-{round}"), format!("b{number}-{round}"));
        // In an order that has no pattern with the length of the query.
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
