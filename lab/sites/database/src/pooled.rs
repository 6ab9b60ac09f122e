//! A worker's own connection: opened on demand, kept between requests, discarded when it is lost.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::{Connection, DatabaseUrl, DbError, Dialect, Row, Value, connect};

/// The settings that all workers' connections share.
#[derive(Clone, Debug)]
pub struct Pool {
    /// The address of the database.
    pub url: DatabaseUrl,
    /// The time without an answer after which a server counts as lost.
    pub silence: Duration,
    /// A lock that is held by the writer to a SQLite database. Without it, SQLite makes the second
    /// writer sleep and retry, and the sleep would count as service time.
    write_lock: Option<Arc<Mutex<()>>>,
}

/// One worker's connection.
pub struct Pooled {
    pool: Pool,
    connection: Option<Box<dyn Connection>>,
    /// The comment in front of statements.
    query_tag: String,
    /// Statements since [`Pooled::ready`].
    begun: u32,
}

impl Pool {
    /// Returns a pool of connections to `url`. A server that sends nothing for longer than
    /// `silence` counts as lost.
    pub fn new(url: DatabaseUrl, silence: Duration) -> Self {
        let write_lock = matches!(url, DatabaseUrl::Sqlite(_)).then(Arc::default);
        Self { url, silence, write_lock }
    }

    /// Returns a connection of this pool, not yet opened.
    pub fn pooled(&self) -> Pooled {
        Pooled { pool: self.clone(), connection: None, query_tag: String::new(), begun: 0 }
    }
}

impl Pooled {
    /// Opens the connection if there is none, and prefixes later statements with `query_tag`.
    ///
    /// Returns whether the connection was open before. It may then have broken unnoticed.
    pub fn ready(&mut self, query_tag: String) -> Result<bool, DbError> {
        self.query_tag = query_tag;
        self.begun = 0;
        let was_there = self.connection.is_some();
        if !was_there {
            self.connection = Some(connect(&self.pool.url, self.pool.silence)?);
        }
        Ok(was_there)
    }

    /// Returns the number of statements begun since [`Pooled::ready`].
    pub fn begun(&self) -> u32 {
        self.begun
    }

    /// Returns the database's number for the connection.
    pub fn number(&self) -> Option<u64> {
        self.connection.as_ref().map(|connection| connection.number())
    }

    /// Returns the flag that cancels the running statement, if the database cannot cancel it on
    /// request from outside.
    pub fn stop(&self) -> Option<Arc<AtomicBool>> {
        self.connection.as_ref().and_then(|connection| connection.stop())
    }

    /// Closes the connection. The next [`Pooled::ready`] opens another.
    pub fn discard(&mut self) {
        self.connection = None;
    }

    /// Returns the dialect of the database.
    pub fn dialect(&self) -> &'static Dialect {
        self.pool.url.dialect()
    }

    /// Runs a statement and returns its rows.
    pub fn query(&mut self, sql: &str, values: &[Value]) -> Result<Vec<Row>, DbError> {
        self.with(sql, |connection, sql| connection.query(sql, values))
    }

    /// Runs a statement and returns the number of rows that it changed.
    pub fn change(&mut self, sql: &str, values: &[Value]) -> Result<u64, DbError> {
        self.with(sql, |connection, sql| connection.change(sql, values))
    }

    /// Runs a statement without parameters or result.
    pub fn command(&mut self, sql: &str) -> Result<(), DbError> {
        self.with(sql, |connection, sql| connection.command(sql))
    }

    /// Runs `work` as one writing transaction, and commits it if `work` succeeds.
    pub fn transaction<T>(
        &mut self,
        work: impl FnOnce(&mut Self) -> Result<T, DbError>,
    ) -> Result<T, DbError> {
        let write_lock = self.pool.write_lock.clone();
        // A poisoned lock protects nothing half done: the database has rolled the transaction back.
        let _held = write_lock
            .as_ref()
            .map(|write_lock| write_lock.lock().unwrap_or_else(PoisonError::into_inner));
        self.command(self.dialect().begin)?;
        let made = work(self).and_then(|made| self.command("COMMIT").map(|()| made));
        if made.is_err() {
            self.roll_back();
        }
        made
    }

    /// Rolls the transaction back, and closes the connection if that fails.
    fn roll_back(&mut self) {
        if let Some(stop) = self.stop() {
            // A request that was stopped must still roll back.
            stop.store(false, Ordering::Relaxed);
        }
        if self.connection.is_some() && self.command("ROLLBACK").is_err() {
            self.discard();
        }
    }

    fn with<T>(
        &mut self,
        sql: &str,
        run: impl FnOnce(&mut dyn Connection, &str) -> Result<T, DbError>,
    ) -> Result<T, DbError> {
        let lost = || DbError::Lost("the connection broke earlier".to_owned());
        let connection = self.connection.as_deref_mut().ok_or_else(lost)?;
        self.begun += 1;
        let result = match self.query_tag.as_str() {
            "" => run(connection, sql),
            query_tag => run(connection, &format!("{query_tag}{sql}")),
        };
        if result.as_ref().is_err_and(DbError::ends_connection) {
            self.discard();
        }
        result
    }
}
