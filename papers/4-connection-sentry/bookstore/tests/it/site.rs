//! A store on a database.

use std::thread;
use std::time::{Duration, Instant};

use bywash_bookstore::{Bookstore, Options, ServiceStats, Stats};

use crate::client::Client;
use crate::databases::Database;

/// Longer than anything a test waits for; shorter than anybody's patience.
const SOON: Duration = Duration::from_secs(20);

/// A running store.
pub(crate) struct Site {
    pub(crate) bookstore: Bookstore,
}

/// Options for a small store on `database`, with few pages, so that it is soon filled.
pub(crate) fn options(database: &Database) -> Options {
    Options {
        database: database.url(),
        pages: Some(1),
        workers: 2,
        tags: true,
        ..Options::default()
    }
}

/// Whether something has come true; looks again until it has.
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

    /// One worker, so that a single request occupies the whole store.
    pub(crate) fn narrow(database: &Database) -> Self {
        Self::with(Options { workers: 1, ..options(database) })
    }

    pub(crate) fn client(&self) -> Client {
        Client::new(self.bookstore.address())
    }

    /// Waits until the statistics say what the test needs to go on.
    pub(crate) fn wait_until(&self, condition: impl Fn(&Stats) -> bool) -> Stats {
        wait_for(|| {
            let stats = self.bookstore.stats();
            if condition(&stats) { Ok(stats) } else { Err(format!("{stats:#?}")) }
        })
    }

    /// Waits until every request received so far has had its outcome.
    pub(crate) fn wait_until_settled(&self) -> Stats {
        self.wait_until(|stats| stats.services.values().all(is_settled))
    }
}

fn is_settled(service: &ServiceStats) -> bool {
    let ServiceStats { received, refused, served, orphaned, cancelled, failed, .. } = *service;
    received == refused + served + orphaned + cancelled + failed
}

/// A request's name as a header line.
pub(crate) fn named(request: &str) -> String {
    format!("bywash-request: {request}\r\n")
}
