//! A worker's own connection: made when it is needed, kept between requests, thrown away when it is lost.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::{Connection, DatabaseUrl, DbError, Dialect, Row, Value, connect};

/// What all workers' connections have in common.
#[derive(Clone, Debug)]
pub struct Pool {
    /// Where it leads.
    pub url: DatabaseUrl,
    /// After which a server that says nothing is taken for lost.
    pub silence: Duration,
    /// Whoever writes to SQLite holds it. SQLite alone would have the second one sleep and try again, which would
    /// show as service time.
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
    /// Connections to `url`. A server that says nothing for longer than `silence` is taken for lost.
    pub fn new(url: DatabaseUrl, silence: Duration) -> Self {
        let write_lock = matches!(url, DatabaseUrl::Sqlite(_)).then(Arc::default);
        Self { url, silence, write_lock }
    }

    /// A connection of it, not yet made.
    pub fn pooled(&self) -> Pooled {
        Pooled { pool: self.clone(), connection: None, query_tag: String::new(), begun: 0 }
    }
}

impl Pooled {
    /// Makes the connection if there is none; statements from here on have `query_tag` in front. Says whether it has
    /// been there before: then it may have broken without being looked at.
    pub fn ready(&mut self, query_tag: String) -> Result<bool, DbError> {
        self.query_tag = query_tag;
        self.begun = 0;
        let was_there = self.connection.is_some();
        if !was_there {
            self.connection = Some(connect(&self.pool.url, self.pool.silence)?);
        }
        Ok(was_there)
    }

    /// How many statements have been begun since [`Pooled::ready`].
    pub fn begun(&self) -> u32 {
        self.begun
    }

    /// The number that the database has for it.
    pub fn number(&self) -> Option<u64> {
        self.connection.as_ref().map(|connection| connection.number())
    }

    /// What stops its statement, if nothing outside can.
    pub fn stop(&self) -> Option<Arc<AtomicBool>> {
        self.connection.as_ref().and_then(|connection| connection.stop())
    }

    /// Closes it. The next [`Pooled::ready`] makes another.
    pub fn discard(&mut self) {
        self.connection = None;
    }

    /// The language of its database.
    pub fn dialect(&self) -> &'static Dialect {
        self.pool.url.dialect()
    }

    /// The rows of a statement.
    pub fn query(&mut self, sql: &str, values: &[Value]) -> Result<Vec<Row>, DbError> {
        self.with(sql, |connection, sql| connection.query(sql, values))
    }

    /// How many rows a statement has changed.
    pub fn change(&mut self, sql: &str, values: &[Value]) -> Result<u64, DbError> {
        self.with(sql, |connection, sql| connection.change(sql, values))
    }

    /// A statement without parameters or result.
    pub fn command(&mut self, sql: &str) -> Result<(), DbError> {
        self.with(sql, |connection, sql| connection.command(sql))
    }

    /// Runs `work` as one writing transaction. What it returns is committed.
    pub fn transaction<T>(
        &mut self,
        work: impl FnOnce(&mut Self) -> Result<T, DbError>,
    ) -> Result<T, DbError> {
        let write_lock = self.pool.write_lock.clone();
        // A poisoned lock protects nothing that could be half done: the database has rolled back.
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

    /// What cannot be undone ends with its connection.
    fn roll_back(&mut self) {
        if let Some(stop) = self.stop() {
            // Who was stopped rolls back all the same.
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
