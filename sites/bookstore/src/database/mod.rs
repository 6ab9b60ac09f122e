//! Connections to a database: SQLite in this process, PostgreSQL or MariaDB beside it.
//!
//! One trait with what the store needs of each, so that every page is made by the same statements. Parameters are
//! never text of a statement. Where dialects differ, [`Dialect`] has the difference.

mod mariadb;
mod place;
mod pooled;
mod postgres;
mod sqlite;
mod trouble;
mod value;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

pub use place::{Place, PlaceError};
pub(crate) use pooled::{Pool, Pooled};
pub(crate) use trouble::Trouble;
pub(crate) use value::{Row, Value};

/// How long a connection may take to be made.
const CONNECT: Duration = Duration::from_secs(5);

/// One connection. Statements have `?` where their parameters go.
pub(crate) trait Connection: Send {
    /// The number that the database has for it; for SQLite a number of our own.
    fn number(&self) -> u64;

    /// The rows of a statement.
    fn query(&mut self, sql: &str, values: &[Value]) -> Result<Vec<Row>, Trouble>;

    /// How many rows a statement has changed.
    fn change(&mut self, sql: &str, values: &[Value]) -> Result<u64, Trouble>;

    /// A statement without parameters or result.
    fn command(&mut self, sql: &str) -> Result<(), Trouble>;

    /// Set while the statement that runs shall end as cancelled, for a database that nobody can ask for that from
    /// outside.
    fn stop(&self) -> Option<Arc<AtomicBool>>;
}

/// Where the databases' languages differ.
#[derive(Debug)]
pub(crate) struct Dialect {
    /// What it is called.
    pub(crate) name: &'static str,
    /// Whether a text has another in it, to the letter: first the text, then `?`.
    pub(crate) contains: &'static str,
    /// Begins a transaction that will write.
    pub(crate) begin: &'static str,
    /// A whole number that numbers its rows by itself.
    pub(crate) numbered: &'static str,
    /// What follows the columns of a new table.
    pub(crate) table: &'static str,
    /// Keeps others from making the tables at the same time, until the connection ends.
    pub(crate) alone: Option<&'static str>,
    /// Gives that back.
    pub(crate) together: Option<&'static str>,
    /// What a new table is given when it is full.
    pub(crate) settle: &'static [&'static str],
}

/// Opens a connection.
fn connect(place: &Place, silence: Duration) -> Result<Box<dyn Connection>, Trouble> {
    match place {
        Place::Sqlite(Some(path)) => Ok(Box::new(sqlite::Sqlite::open(path)?)),
        Place::Sqlite(None) => {
            Err(Trouble::Failed("a temporary file is made by the store".to_owned()))
        }
        Place::Postgres(config) => Ok(Box::new(postgres::Postgres::open(config, silence)?)),
        Place::MariaDb(opts) => Ok(Box::new(mariadb::MariaDb::open(opts, silence)?)),
    }
}

impl Place {
    /// The language of its database.
    pub(crate) fn dialect(&self) -> &'static Dialect {
        match self {
            Self::Sqlite(_) => &sqlite::DIALECT,
            Self::Postgres(_) => &postgres::DIALECT,
            Self::MariaDb(_) => &mariadb::DIALECT,
        }
    }
}
