//! The set-up of the tests: a running store on a database.

use std::thread;
use std::time::{Duration, Instant};

use bywash_bookstore::{Bookstore, Options, ServiceStats, Stats};

use crate::client::Client;
use crate::databases::Database;

/// The time limit of a wait, longer than anything that a test waits for.
const SOON: Duration = Duration::from_secs(20);

/// A store that runs for one test.
pub(crate) struct Site {
    pub(crate) bookstore: Bookstore,
}

/// Returns options for a store on `database` with one page per book, so that the database is filled
/// quickly.
pub(crate) fn options(database: &Database) -> Options {
    Options {
        database: database.url(),
        pages: Some(1),
        workers: 2,
        tags: true,
        ..Options::default()
    }
}

/// Calls `look` until it returns a value, and returns the value. Panics with the last error if the
/// time [`SOON`] is over.
pub(crate) fn wait_for<T>(mut look: impl FnMut() -> Result<T, String>) -> T {
    let begun = Instant::now();
    loop {
        match look() {
            Ok(seen) => return seen,
            Err(why) => assert!(begun.elapsed() < SOON, "never came true: {why}"),
        }
        thread::yield_now();
    }
}

impl Site {
    pub(crate) fn open(database: &Database) -> Self {
        Self::with(options(database))
    }

    pub(crate) fn with(options: Options) -> Self {
        Self { bookstore: Bookstore::start(options).unwrap() }
    }

    /// Opens a store with one worker, so that a single request occupies the whole store.
    pub(crate) fn narrow(database: &Database) -> Self {
        Self::with(Options { workers: 1, ..options(database) })
    }

    pub(crate) fn client(&self) -> Client {
        Client::new(self.bookstore.address())
    }

    /// Waits until `condition` holds for the statistics, and returns them.
    pub(crate) fn wait_until(&self, condition: impl Fn(&Stats) -> bool) -> Stats {
        wait_for(|| {
            let stats = self.bookstore.stats();
            if condition(&stats) { Ok(stats) } else { Err(format!("{stats:#?}")) }
        })
    }

    /// Waits until every request received so far has its outcome, and returns the statistics.
    pub(crate) fn wait_until_settled(&self) -> Stats {
        self.wait_until(|stats| stats.services.values().all(is_settled))
    }
}

fn is_settled(service: &ServiceStats) -> bool {
    let ServiceStats { received, refused, served, orphaned, cancelled, failed, .. } = *service;
    received == refused + served + orphaned + cancelled + failed
}

/// Returns the header line that gives a request the identifier `request`.
pub(crate) fn named(request: &str) -> String {
    format!("bywash-request: {request}\r\n")
}
