//! The options of a store.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use bywash_lease::DatabaseName;

use crate::{BookstoreError, DatabaseUrl};

/// The largest number of workers: a larger one is a typing error, not a capacity.
const MAX_WORKERS: usize = 1024;

/// The largest number of pages: more would be some hundred megabytes of text, which is a typing
/// error.
const MAX_PAGES: u32 = 64;

/// The capacity, cost, address and database of a store.
#[derive(Clone, Debug)]
pub struct Options {
    /// The address to listen on. Port 0 takes a free port, see [`crate::Bookstore::address`].
    pub listen: SocketAddr,
    /// The database of the books, which is filled if it is empty.
    pub database: DatabaseUrl,
    /// The number of requests that run at a time, each with a database connection, 1 to 1024.
    pub workers: usize,
    /// The number of requests that may wait for a worker, at least 1. The default is 511, the
    /// listen backlog of servers at the time of paper 4.
    pub backlog: usize,
    /// Pages of text in a book, 1 to 64, which set the time scale. The default is
    /// [`Options::USUAL_PAGES`], or the number in the database.
    pub pages: Option<u32>,
    /// Whether a comment in front of each statement names its request.
    pub tags: bool,
    /// The time without an answer after which a database server counts as lost. It must be longer
    /// than any query.
    pub silence: Duration,
    /// The stop daemon to which the store announces which request uses which connection.
    pub stopd: Option<Stopd>,
}

/// The address of the stop daemon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stopd {
    /// The socket of the daemon.
    pub socket: PathBuf,
    /// The daemon's name for the database. It is not used for SQLite, which is in this process.
    pub name: DatabaseName,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            database: DatabaseUrl::Sqlite(None),
            workers: 16,
            backlog: 511,
            pages: None,
            tags: false,
            silence: Duration::from_secs(300),
            stopd: None,
        }
    }
}

impl Options {
    /// The default number of pages, with which a search takes some tens of milliseconds.
    pub const USUAL_PAGES: u32 = 8;

    /// Checks that the options can work.
    pub(crate) fn check(&self) -> Result<(), BookstoreError> {
        if !(1..=MAX_WORKERS).contains(&self.workers) {
            return Err(BookstoreError::Option("workers must be from 1 to 1024"));
        }
        if self.backlog == 0 {
            return Err(BookstoreError::Option("backlog must be at least 1"));
        }
        if self.pages.is_some_and(|pages| !(1..=MAX_PAGES).contains(&pages)) {
            return Err(BookstoreError::Option("pages must be from 1 to 64"));
        }
        if self.silence.is_zero() {
            return Err(BookstoreError::Option(
                "silence must be above 0: a database needs time to answer",
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_can_be_run() {
        assert!(Options::default().check().is_ok());
    }

    #[test]
    fn what_could_not_work_is_refused() {
        let wrong = [
            Options { workers: 0, ..Options::default() },
            Options { workers: 1025, ..Options::default() },
            Options { backlog: 0, ..Options::default() },
            Options { pages: Some(0), ..Options::default() },
            Options { pages: Some(65), ..Options::default() },
            Options { silence: Duration::ZERO, ..Options::default() },
        ];
        for options in wrong {
            assert!(matches!(options.check(), Err(BookstoreError::Option(_))), "{options:?}");
        }
    }
}
