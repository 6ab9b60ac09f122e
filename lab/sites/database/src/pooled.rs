//! The database connection of a worker. It is opened on demand, kept between requests, and
//! discarded when it is lost.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::{Connection, DatabaseUrl, DbError, Dialect, Row, Value, connect};

/// The settings that the connections of all workers share.
#[derive(Clone, Debug)]
pub struct Pool {
    /// The address of the database.
    pub url: DatabaseUrl,
    /// The time after which a server that sends nothing counts as lost.
    pub silence: Duration,
    /// The lock that the writer to a SQLite database holds; `None` for other databases. Without it,
    /// SQLite makes the second writer sleep and retry, and the sleep would count as service time.
    write_lock: Option<Arc<Mutex<()>>>,
}

/// The connection of one worker to the database.
pub struct Pooled {
    pool: Pool,
    connection: Option<Box<dyn Connection>>,
    /// The comment that is put in front of every statement, by which the stop daemon finds the
    /// request.
    query_tag: String,
    /// The number of statements begun since the last [`Pooled::ready`].
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
    /// Opens the connection if it is not open, and puts `query_tag` in front of later statements.
    ///
    /// Returns whether the connection was open before. Such a connection may have broken unnoticed.
    pub fn ready(&mut self, query_tag: String) -> Result<bool, DbError> {
        self.query_tag = query_tag;
        self.begun = 0;
        let was_there = self.connection.is_some();
        if !was_there {
            self.connection = Some(connect(&self.pool.url, self.pool.silence)?);
        }
        Ok(was_there)
    }

    /// Returns the number of statements begun since the last [`Pooled::ready`].
    pub fn begun(&self) -> u32 {
        self.begun
    }

    /// Returns the number by which the database identifies the connection; `None` if it has none.
    pub fn number(&self) -> Option<u64> {
        self.connection.as_ref().map(|connection| connection.number())
    }

    /// Returns a flag that cancels the running statement while it is set. Returns `None` for a
    /// database that cancels statements on request from outside, or if the connection is not open.
    pub fn stop(&self) -> Option<Arc<AtomicBool>> {
        self.connection.as_ref().and_then(|connection| connection.stop())
    }

    /// Closes the connection. The next [`Pooled::ready`] opens another.
    pub fn discard(&mut self) {
        self.connection = None;
    }

    /// Returns the SQL dialect of the database.
    pub fn dialect(&self) -> &'static Dialect {
        self.pool.url.dialect()
    }

    /// Runs a statement with the parameters `values`, and returns its rows.
    pub fn query(&mut self, sql: &str, values: &[Value]) -> Result<Vec<Row>, DbError> {
        self.with(sql, |connection, sql| connection.query(sql, values))
    }

    /// Runs a statement with the parameters `values`, and returns the number of rows that it
    /// changed.
    pub fn change(&mut self, sql: &str, values: &[Value]) -> Result<u64, DbError> {
        self.with(sql, |connection, sql| connection.change(sql, values))
    }

    /// Runs a statement without parameters or result.
    pub fn command(&mut self, sql: &str) -> Result<(), DbError> {
        self.with(sql, |connection, sql| connection.command(sql))
    }

    /// Runs `work` as one writing transaction. Commits it if `work` succeeds, and rolls it back
    /// otherwise.
    pub fn transaction<T>(
        &mut self,
        work: impl FnOnce(&mut Self) -> Result<T, DbError>,
    ) -> Result<T, DbError> {
        let write_lock = self.pool.write_lock.clone();
        // A poisoned lock leaves nothing unfinished, because the database has rolled the
        // transaction back.
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

    /// Rolls the transaction back. Closes the connection if that fails.
    fn roll_back(&mut self) {
        if let Some(stop) = self.stop() {
            // The flag of a stopped request is reset, because the roll-back must still run.
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
