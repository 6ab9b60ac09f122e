//! Measures the cost of each service alone on the given database. The laboratory scales its times
//! by these costs.

use std::time::{Duration, Instant};

use crate::bookstore::Fixture;
use crate::request::{Operation, StoreRequest};
use crate::store::{Answer, Store};
use crate::{BOOKS, BookstoreError, CATEGORIES, Options, Service, files};

/// The number of counted runs of each service. It is odd, so that the median is one of the measured
/// times.
const RUNS: u32 = 21;

/// The measured cost of one service.
#[derive(Clone, Copy, Debug)]
pub struct Cost {
    /// The service that was measured.
    pub service: Service,
    /// The median over several runs of the time that a worker takes for one request.
    pub time: Duration,
}

/// Measures the cost of every service while nothing else runs. The cost is the time from when a
/// worker takes a request to its answer, without HTTP. For SQLite, this is processor time. For a
/// database server with its own core, it is processor time plus the round trips.
pub fn calibrate(options: &Options) -> Result<Vec<Cost>, BookstoreError> {
    let fixture = Fixture::prepare(options)?;
    let mut store = Store::new(&fixture.pool, None, options.tags)
        .map_err(BookstoreError::system("/dev/urandom"))?;
    Service::ALL.into_iter().map(|service| cost(service, &mut store)).collect()
}

fn cost(service: Service, store: &mut Store) -> Result<Cost, BookstoreError> {
    let mut times = Vec::new();
    // The first three runs warm the caches and are not counted.
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

/// Measures one order of `book`. It first puts the book into a cart, which is not part of the
/// returned time.
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
