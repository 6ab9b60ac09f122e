//! The options of a store.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use bywash_lease::DatabaseName;

use crate::{BookstoreError, DatabaseUrl};

/// The maximum number of workers. A larger number is assumed to be a typing error.
const MAX_WORKERS: usize = 1024;

/// The maximum number of pages per book. A larger number would mean some hundred megabytes of text,
/// and is assumed to be a typing error.
const MAX_PAGES: u32 = 64;

/// The capacity, cost, address and database of a store.
#[derive(Clone, Debug)]
pub struct Options {
    /// The address on which the store listens. Port 0 takes a free port, see
    /// [`crate::Bookstore::address`].
    pub listen: SocketAddr,
    /// The address of the database with the books. An empty database is filled.
    pub database: DatabaseUrl,
    /// The number of workers, 1 to 1024. Each runs one request at a time on its own database
    /// connection.
    pub workers: usize,
    /// The maximum number of requests that wait for a worker, at least 1. The default is 511, the
    /// listen backlog of servers at the time of paper 4.
    pub backlog: usize,
    /// The number of pages of text per book, 1 to 64. The cost of a search is proportional to this
    /// number. `None` means the number in the database, or [`Options::USUAL_PAGES`] for an empty
    /// database.
    pub pages: Option<u32>,
    /// Whether each statement begins with a comment that names its request.
    pub tags: bool,
    /// The time without data after which a connection to a database server counts as lost. It must
    /// be longer than any query.
    pub silence: Duration,
    /// The stop daemon that learns which request uses which connection; `None` uses no daemon.
    pub stopd: Option<Stopd>,
}

/// The address of the stop daemon, and its name for the database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stopd {
    /// The path of the daemon's Unix socket.
    pub socket: PathBuf,
    /// The daemon's name for the database. It is not used for SQLite, which runs in this process.
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
    /// The default number of pages per book, with which a search takes some tens of milliseconds.
    pub const USUAL_PAGES: u32 = 8;

    /// Returns an error if an option is outside its range.
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
