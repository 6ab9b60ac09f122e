//! Connections to SQLite, PostgreSQL or MariaDB, which the applications under test share.
//!
//! [`Connection`] has what they need of each, so that every page is made by the same statements. Parameters are
//! never text of a statement. Where dialects differ, [`Dialect`] has the difference. A worker has one [`Pooled`], made when
//! it is needed; [`populate`] makes and fills tables
//! once. Requests wait in a [`WorkQueue`] for their worker, and [`Counters`] says what became of them.
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

/// How long a connection may take to be made.
const CONNECT: Duration = Duration::from_secs(5);

/// One connection. Statements have `?` where their parameters go.
pub trait Connection: Send {
    /// The number that the database has for it; for SQLite a number of our own.
    fn number(&self) -> u64;

    /// The rows of a statement.
    fn query(&mut self, sql: &str, values: &[Value]) -> Result<Vec<Row>, DbError>;

    /// How many rows a statement has changed.
    fn change(&mut self, sql: &str, values: &[Value]) -> Result<u64, DbError>;

    /// A statement without parameters or result.
    fn command(&mut self, sql: &str) -> Result<(), DbError>;

    /// Set while the statement that runs shall end as cancelled, for a database that nobody can ask for that from
    /// outside.
    fn stop(&self) -> Option<Arc<AtomicBool>>;
}

/// Where the databases' languages differ.
#[derive(Debug)]
pub struct Dialect {
    /// What it is called.
    pub name: &'static str,
    /// The function that says where in a text another begins, to the letter, and zero if it is not in it.
    pub position: &'static str,
    /// Begins a transaction that will write.
    pub begin: &'static str,
    /// A whole number that numbers its rows by itself.
    pub auto_increment: &'static str,
    /// What follows the columns of a new table.
    pub table: &'static str,
    /// Keeps others from making the tables at the same time, until the connection ends.
    pub lock: Option<&'static str>,
    /// Gives that back.
    pub unlock: Option<&'static str>,
    /// What a new table is given when it is full, before its name.
    pub analyze: &'static str,
}

/// Opens a connection.
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
    /// The language of its database.
    pub fn dialect(&self) -> &'static Dialect {
        match self {
            Self::Sqlite(_) => &sqlite::DIALECT,
            Self::Postgres(_) => &postgres::DIALECT,
            Self::MariaDb(_) => &mariadb::DIALECT,
        }
    }
}
