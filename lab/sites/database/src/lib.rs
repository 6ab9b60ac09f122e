//! Connections to SQLite, PostgreSQL or MariaDB, shared by the applications under test.
//!
//! [`Connection`] offers the operations that the applications need from each database, so that the
//! pages use the same statements with every database. Parameters are never part of a statement's
//! text. [`Dialect`] holds the differences between the databases. Each worker has one [`Pooled`],
//! which connects on demand. [`populate`] creates and fills the tables once. Requests wait in a
//! [`WorkQueue`] for a worker, and [`Counters`] counts their outcomes.
#![forbid(unsafe_code)]

mod counters;
mod database_url;
mod error;
mod mariadb;
mod pooled;
mod populate;
mod postgres;
mod sqlite;
mod value;
mod work_queue;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

pub use counters::{Busy, Counters, Outcome, Running, ServiceStats};
pub use database_url::{DatabaseUrl, DatabaseUrlError};
pub use error::DbError;
pub use pooled::{Pool, Pooled};
pub use populate::{insert, populate};
pub use value::{Row, Value};
pub use work_queue::{DbResult, WorkQueue};

/// The time limit for opening a connection.
const CONNECT: Duration = Duration::from_secs(5);

/// One connection to a database. Statements have `?` in place of their parameters.
pub trait Connection: Send {
    /// Returns the number by which the database identifies the connection. For SQLite, this crate
    /// assigns the number.
    fn number(&self) -> u64;

    /// Runs a statement with the parameters `values`, and returns its rows.
    fn query(&mut self, sql: &str, values: &[Value]) -> Result<Vec<Row>, DbError>;

    /// Runs a statement with the parameters `values`, and returns the number of rows that it
    /// changed.
    fn change(&mut self, sql: &str, values: &[Value]) -> Result<u64, DbError>;

    /// Runs a statement without parameters or result.
    fn command(&mut self, sql: &str) -> Result<(), DbError>;

    /// Returns a flag; while the flag is set, the database ends the running statement as cancelled.
    /// Returns `None` for a database that cancels statements on request from outside.
    fn stop(&self) -> Option<Arc<AtomicBool>>;
}

/// The differences between the databases' SQL dialects.
#[derive(Debug)]
pub struct Dialect {
    /// The name of the database.
    pub name: &'static str,
    /// The SQL function that returns the position of one text in another, compared exactly, or zero
    /// if it does not occur.
    pub position: &'static str,
    /// The SQL statement that begins a writing transaction.
    pub begin: &'static str,
    /// The column type of an integer key that the database assigns to each row.
    pub auto_increment: &'static str,
    /// The clause that follows the columns of a new table.
    pub table: &'static str,
    /// The statement that keeps other processes from creating the tables at the same time; `None`
    /// if the database needs no lock. The lock lasts until [`Self::unlock`] or the end of the
    /// connection.
    pub lock: Option<&'static str>,
    /// The statement that releases the lock; `None` if the database needs no lock.
    pub unlock: Option<&'static str>,
    /// The statement, without the table's name, that collects statistics about a newly filled
    /// table.
    pub analyze: &'static str,
}

/// Opens a connection to the database at `url`. The connection counts as lost if the server sends
/// nothing for `silence`.
fn connect(url: &DatabaseUrl, silence: Duration) -> Result<Box<dyn Connection>, DbError> {
    match url {
        DatabaseUrl::Sqlite(Some(path)) => Ok(Box::new(sqlite::Sqlite::open(path)?)),
        DatabaseUrl::Sqlite(None) => {
            Err(DbError::Failed("the caller makes the temporary file".to_owned()))
        }
        DatabaseUrl::Postgres(config) => Ok(Box::new(postgres::Postgres::open(config, silence)?)),
        DatabaseUrl::MariaDb(opts) => Ok(Box::new(mariadb::MariaDb::open(opts, silence)?)),
    }
}

impl DatabaseUrl {
    /// Returns the SQL dialect of the database at this URL.
    pub fn dialect(&self) -> &'static Dialect {
        match self {
            Self::Sqlite(_) => &sqlite::DIALECT,
            Self::Postgres(_) => &postgres::DIALECT,
            Self::MariaDb(_) => &mariadb::DIALECT,
        }
    }
}
