//! Connections to PostgreSQL. Each connection has its own runtime, which moves its bytes while a
//! statement runs.
//!
//! A statement is sent in one message, unnamed and with the types of its parameters. That takes one
//! round trip. No prepared statement is kept, because the comment in front of it differs between
//! requests.

use std::error::Error;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio::time;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Config, NoTls};

use crate::{CONNECT, Connection, DbError, Dialect, Row, Value};

pub(crate) const DIALECT: Dialect = Dialect {
    name: "postgres",
    position: "strpos",
    begin: "BEGIN",
    auto_increment: "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
    table: "",
    // The number of the advisory lock is arbitrary. No other lock in this database uses it.
    lock: Some("SELECT pg_advisory_lock(4309004309)"),
    unlock: Some("SELECT pg_advisory_unlock(4309004309)"),
    // Without the vacuum, the first readers of a database page would have to write hint bits into
    // it.
    analyze: "VACUUM (ANALYZE)",
};

/// Settings of a connection. With them, one thread runs a query, and the query's cost does not
/// depend on the number of other queries, as in the databases of the papers.
const SETTINGS: &str = "-c max_parallel_workers_per_gather=0 -c jit=off";

/// A connection to a PostgreSQL server.
pub(crate) struct Postgres {
    runtime: Runtime,
    client: Client,
    number: u64,
    silence: Duration,
}

impl Postgres {
    pub(crate) fn open(config: &Config, silence: Duration) -> Result<Self, DbError> {
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|cause| DbError::Lost(cause.to_string()))?;
        let mut config = config.clone();
        config.connect_timeout(CONNECT).application_name("bywash-site").options(SETTINGS);
        let client = runtime.block_on(async {
            let made = time::timeout(CONNECT, config.connect(NoTls)).await;
            let made = made.map_err(|_| DbError::Silent)?;
            let (client, connection) = made.map_err(|cause| DbError::Lost(words(&cause)))?;
            // If the connection ends, the next statement reports it.
            tokio::spawn(connection);
            Ok(client)
        })?;
        let mut postgres = Self { runtime, client, number: 0, silence };
        let rows = postgres.query("SELECT pg_backend_pid()::bigint", &[])?;
        let row = rows
            .first()
            .ok_or_else(|| DbError::Lost("the server gave no process number".to_owned()))?;
        postgres.number = row.number(0)?.unsigned_abs();
        Ok(postgres)
    }

    fn wait<T>(
        &self,
        asked: impl Future<Output = Result<T, tokio_postgres::Error>>,
    ) -> Result<T, DbError> {
        let answered = self.runtime.block_on(async { time::timeout(self.silence, asked).await });
        answered.map_err(|_| DbError::Silent)?.map_err(db_error)
    }
}

impl Connection for Postgres {
    fn number(&self) -> u64 {
        self.number
    }

    fn query(&mut self, sql: &str, values: &[Value]) -> Result<Vec<Row>, DbError> {
        let (sql, values) = (numbered(sql), typed(values));
        let rows = self.wait(self.client.query_typed(&sql, &values))?;
        rows.iter().map(row).collect::<Result<_, _>>().map_err(db_error)
    }

    fn change(&mut self, sql: &str, values: &[Value]) -> Result<u64, DbError> {
        let (sql, values) = (numbered(sql), typed(values));
        self.wait(self.client.execute_typed(&sql, &values))
    }

    fn command(&mut self, sql: &str) -> Result<(), DbError> {
        self.wait(self.client.batch_execute(sql))
    }

    fn stop(&self) -> Option<Arc<AtomicBool>> {
        None
    }
}

/// Replaces each `?` of a statement by `$1`, `$2`, … in order. No statement of the applications has
/// a question mark in a text.
fn numbered(sql: &str) -> String {
    let mut parts = sql.split('?');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.zip(1_u32..).fold(first, |sql, (part, number)| format!("{sql}${number}{part}"))
}

fn typed(values: &[Value]) -> Vec<(&(dyn ToSql + Sync), Type)> {
    let typed = |value| match value {
        &Value::Null => (&None::<&str> as &(dyn ToSql + Sync), Type::TEXT),
        Value::Number(number) => (number as _, Type::INT8),
        Value::Text(text) => (text as _, Type::TEXT),
    };
    values.iter().map(typed).collect()
}

fn row(row: &tokio_postgres::Row) -> Result<Row, tokio_postgres::Error> {
    let field = |(column, kind): (usize, &tokio_postgres::Column)| match *kind.type_() {
        Type::INT8 => row.try_get::<_, Option<i64>>(column).map(|field| field.map(Value::Number)),
        _ => row.try_get::<_, Option<String>>(column).map(|field| field.map(Value::Text)),
    };
    let fields = row.columns().iter().enumerate().map(field);
    fields
        .map(|field| field.map(|field| field.unwrap_or(Value::Null)))
        .collect::<Result<_, _>>()
        .map(Row)
}

/// Maps an error of the client library to an error of this crate. An error without a server code
/// means that the connection has ended.
#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
fn db_error(error: tokio_postgres::Error) -> DbError {
    let ends = [SqlState::ADMIN_SHUTDOWN, SqlState::CRASH_SHUTDOWN, SqlState::CANNOT_CONNECT_NOW];
    match error.as_db_error() {
        Some(server_error) if *server_error.code() == SqlState::QUERY_CANCELED => {
            DbError::Cancelled
        }
        Some(server_error) if *server_error.code() == SqlState::UNIQUE_VIOLATION => {
            DbError::Duplicate
        }
        Some(server_error) if ends.contains(server_error.code()) => {
            DbError::Lost(server_error.message().to_owned())
        }
        Some(_) => DbError::Failed(words(&error)),
        None => DbError::Lost(words(&error)),
    }
}

/// Returns the text of the error and of its source, because the error's own text names only the
/// step that failed.
fn words(error: &tokio_postgres::Error) -> String {
    error.source().map_or_else(|| error.to_string(), |source| format!("{error}: {source}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_numbered_from_the_left() {
        assert_eq!(numbered("a ? b ? c"), "a $1 b $2 c");
        assert_eq!(numbered("none"), "none");
    }
}
