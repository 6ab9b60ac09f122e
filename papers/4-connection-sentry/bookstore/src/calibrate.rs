//! Measures the cost of each service alone, in the given database. A laboratory scales its times by
//! it.

use std::time::{Duration, Instant};

use crate::bookstore::Fixture;
use crate::request::{Operation, StoreRequest};
use crate::store::{Answer, Store};
use crate::{BOOKS, BookstoreError, CATEGORIES, Options, Service, files};

/// The number of runs of each service. It is odd, because the median is taken.
const RUNS: u32 = 21;

/// The cost of one service.
#[derive(Clone, Copy, Debug)]
pub struct Cost {
    /// The service.
    pub service: Service,
    /// A worker's time for one request, the median of several.
    pub time: Duration,
}

/// Measures the cost of every service while nothing else runs: the time of one worker from taking a
/// request to its answer, without HTTP. For SQLite, and for a database with its own core, that is
/// processor time, except for the round trip.
pub fn calibrate(options: &Options) -> Result<Vec<Cost>, BookstoreError> {
    let fixture = Fixture::prepare(options)?;
    let mut store = Store::new(&fixture.pool, None, options.tags)
        .map_err(BookstoreError::system("/dev/urandom"))?;
    Service::ALL.into_iter().map(|service| cost(service, &mut store)).collect()
}

fn cost(service: Service, store: &mut Store) -> Result<Cost, BookstoreError> {
    let mut times = Vec::new();
    // The first runs warm the caches and are not counted.
    for run in 0..RUNS + 3 {
        times.push(time(service, run, store)?);
    }
    let times = &mut times[3..];
    times.sort_unstable();
    Ok(Cost { service, time: times[times.len() / 2] })
}

fn time(service: Service, run: u32, store: &mut Store) -> Result<Duration, BookstoreError> {
    let book = i64::from(1 + run * 131 % BOOKS);
    let operation = match service {
        Service::File => {
            let begun = Instant::now();
            std::hint::black_box(files::file(1 + run * 131 % files::FILES));
            return Ok(begun.elapsed());
        }
        Service::Home => Operation::Home,
        Service::Search => Operation::Search(crate::books::word(u64::from(run) * 31)),
        Service::Browse => {
            Operation::Browse(Some(CATEGORIES[run as usize % CATEGORIES.len()].to_owned()))
        }
        Service::Select => Operation::Select(book),
        Service::Cart => Operation::Cart(book),
        Service::Buy => return buy(book, store),
    };
    serve(service, &StoreRequest { operation, sid: None, id: None }, store).map(|(time, _)| time)
}

/// Measures an order. An order needs a cart first.
fn buy(book: i64, store: &mut Store) -> Result<Duration, BookstoreError> {
    let request = StoreRequest { operation: Operation::Cart(book), sid: None, id: None };
    let (_, answer) = serve(Service::Cart, &request, store)?;
    let request = StoreRequest { operation: Operation::Buy, sid: answer.new_session, id: None };
    serve(Service::Buy, &request, store).map(|(time, _)| time)
}

fn serve(
    service: Service,
    request: &StoreRequest,
    store: &mut Store,
) -> Result<(Duration, Answer), BookstoreError> {
    let begun = Instant::now();
    let answer = store.serve(request).map_err(|error| BookstoreError::Calibrate {
        service: service.name(),
        why: error.to_string(),
    })?;
    Ok((begun.elapsed(), answer))
}
