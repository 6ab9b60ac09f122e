//! Connections to MariaDB.
//!
//! Every statement is prepared, run once and closed. No statement is cached, because the comment in
//! front of it differs between requests. The server's process list shows the statement while it is
//! prepared and while it runs. A `KILL QUERY` between these two steps has no effect, as between any
//! two statements.

use std::io::ErrorKind;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use mysql::prelude::Queryable;
use mysql::{Conn, Opts, OptsBuilder, Params, Statement};

use crate::{CONNECT, Connection, DbError, Dialect, Row, Value};

pub(crate) const DIALECT: Dialect = Dialect {
    name: "mariadb",
    position: "instr",
    begin: "BEGIN",
    auto_increment: "BIGINT AUTO_INCREMENT PRIMARY KEY",
    // Compare texts exactly, as the other databases do.
    table: "ENGINE = InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_bin",
    lock: Some("DO GET_LOCK('bywash-site', 300)"),
    unlock: Some("DO RELEASE_LOCK('bywash-site')"),
    analyze: "ANALYZE TABLE",
};

/// The server's code for a query that was cancelled (`ER_QUERY_INTERRUPTED`).
const INTERRUPTED: u16 = 1317;
/// The server's code for a violated unique index (`ER_DUP_ENTRY`).
const DUPLICATE: u16 = 1062;
/// The server's codes of errors after which the server ends the connection (`ER_SERVER_SHUTDOWN`
/// and `ER_CONNECTION_KILLED`).
const ENDS: [u16; 2] = [1053, 1927];

/// The kinds of I/O error by which a read reports that it timed out.
const SILENT: [ErrorKind; 2] = [ErrorKind::WouldBlock, ErrorKind::TimedOut];

/// The statement that sets the isolation level which PostgreSQL has by default. MariaDB's default
/// level locks gaps between rows, so carts of different sessions would deadlock.
const SETTINGS: &str = "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED";

/// A connection to a MariaDB server.
pub(crate) struct MariaDb {
    connection: Conn,
}

impl MariaDb {
    pub(crate) fn open(opts: &Opts, silence: Duration) -> Result<Self, DbError> {
        let opts = OptsBuilder::from_opts(opts.clone())
            .tcp_connect_timeout(Some(CONNECT))
            .read_timeout(Some(silence))
            .write_timeout(Some(silence))
            .stmt_cache_size(0)
            .init(vec![SETTINGS])
            // Connect to the given address, never to a local socket instead.
            .prefer_socket(false);
        let made = Conn::new(opts).map_err(|cause| DbError::Lost(cause.to_string()))?;
        Ok(Self { connection: made })
    }

    /// Prepares a statement, passes it to the function `run`, and closes it whatever the result.
    /// Without closing, statements would accumulate. The server has room for some thousands of
    /// prepared statements, and the library closes only those that leave its cache.
    fn prepared<T>(
        &mut self,
        sql: &str,
        run: impl FnOnce(&mut Conn, &Statement) -> mysql::Result<T>,
    ) -> Result<T, DbError> {
        let statement = self.connection.prep(sql).map_err(db_error)?;
        let done = run(&mut self.connection, &statement);
        let closed = self.connection.close(statement);
        let value = done.map_err(db_error)?;
        closed.map_err(db_error).map(|()| value)
    }
}

impl Connection for MariaDb {
    fn number(&self) -> u64 {
        self.connection.connection_id().into()
    }

    fn query(&mut self, sql: &str, values: &[Value]) -> Result<Vec<Row>, DbError> {
        let run = |connection: &mut Conn, statement: &Statement| {
            connection.exec::<mysql::Row, _, _>(statement, params(values))
        };
        let rows = self.prepared(sql, run)?;
        rows.into_iter().map(row).collect()
    }

    fn change(&mut self, sql: &str, values: &[Value]) -> Result<u64, DbError> {
        self.prepared(sql, |connection, statement| {
            connection.exec_drop(statement, params(values))?;
            Ok(connection.affected_rows())
        })
    }

    fn command(&mut self, sql: &str) -> Result<(), DbError> {
        self.connection.query_drop(sql).map_err(db_error)
    }

    fn stop(&self) -> Option<Arc<AtomicBool>> {
        None
    }
}

fn params(values: &[Value]) -> Params {
    let param = |value: &Value| match value {
        Value::Null => mysql::Value::NULL,
        Value::Number(number) => mysql::Value::Int(*number),
        Value::Text(text) => mysql::Value::Bytes(text.clone().into_bytes()),
    };
    if values.is_empty() {
        return Params::Empty;
    }
    Params::Positional(values.iter().map(param).collect())
}

fn row(row: mysql::Row) -> Result<Row, DbError> {
    let fields = row.unwrap_raw().into_iter();
    fields.map(|field| read(field.unwrap_or(mysql::Value::NULL))).collect::<Result<_, _>>().map(Row)
}

fn read(value: mysql::Value) -> Result<Value, DbError> {
    match value {
        mysql::Value::NULL => Ok(Value::Null),
        mysql::Value::Int(number) => Ok(Value::Number(number)),
        mysql::Value::Bytes(bytes) => String::from_utf8(bytes)
            .map(Value::Text)
            .map_err(|error| DbError::Failed(error.to_string())),
        other => Err(DbError::Failed(format!("a field of an unexpected type: {other:?}"))),
    }
}

#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
fn db_error(error: mysql::Error) -> DbError {
    match &error {
        mysql::Error::MySqlError(server_error) if server_error.code == INTERRUPTED => {
            DbError::Cancelled
        }
        mysql::Error::MySqlError(server_error) if server_error.code == DUPLICATE => {
            DbError::Duplicate
        }
        mysql::Error::MySqlError(server_error) if !ENDS.contains(&server_error.code) => {
            DbError::Failed(server_error.message.clone())
        }
        mysql::Error::IoError(cause) if SILENT.contains(&cause.kind()) => DbError::Silent,
        _ => DbError::Lost(error.to_string()),
    }
}
