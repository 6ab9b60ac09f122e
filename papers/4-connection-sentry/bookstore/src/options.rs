//! What the operator of a store may choose.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use bywash_lease::DatabaseName;

use crate::{BookstoreError, DatabaseUrl};

/// More threads than this is a typing error, not a capacity.
const MAX_WORKERS: usize = 1024;

/// More pages than this is a typing error: some hundred megabytes of text.
const MAX_PAGES: u32 = 64;

/// The capacity of a store, what it costs, and where it lives.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where to listen; port 0 takes a free one, see [`crate::Bookstore::address`].
    pub listen: SocketAddr,
    /// Where the books are. They are made if they are missing.
    pub database: DatabaseUrl,
    /// How many requests run at a time, each with a database connection, 1 to 1024.
    pub workers: usize,
    /// How many requests may wait for a worker, at least 1. Default 511, the listen backlog of the servers of the
    /// seed's time.
    pub backlog: usize,
    /// Pages of text a book has, 1 to 64: the time scale. Default [`Options::USUAL_PAGES`], or what the database has.
    pub pages: Option<u32>,
    /// Whether statements say in a comment in front whose they are.
    pub tags: bool,
    /// After which a database server that says nothing is taken for lost. Longer than any query may take.
    pub silence: Duration,
    /// The stop daemon that is told which request uses which connection.
    pub sentry: Option<Sentry>,
}

/// Where the stop daemon is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sentry {
    /// Its socket.
    pub socket: PathBuf,
    /// What it calls the database, unless that is SQLite, which is in this process.
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
            sentry: None,
        }
    }
}

impl Options {
    /// With so many a search takes some tens of milliseconds.
    pub const USUAL_PAGES: u32 = 8;

    /// Refuses what could not work rather than guessing what was meant.
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
