//! Connections to SQLite. The database is a file, which the worker's own thread reads and searches.
//!
//! Because of the write-ahead log, readers never wait. Writers of this process take turns
//! ([`super::Pooled`]). A statement cannot be cancelled from outside. Instead, SQLite checks a flag
//! every few hundred steps of a statement. The flag has an effect even if it is set before the
//! statement runs. An interrupt would have none.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{ErrorCode, ToSql, params_from_iter};

use crate::{Connection, DbError, Dialect, Row, Value};

pub(crate) const DIALECT: Dialect = Dialect {
    name: "sqlite",
    position: "instr",
    begin: "BEGIN IMMEDIATE",
    auto_increment: "INTEGER PRIMARY KEY",
    table: "",
    lock: None,
    unlock: None,
    analyze: "ANALYZE",
};

/// The maximum time to wait for another process that writes to the database file.
const BUSY: Duration = Duration::from_secs(2);

/// The number of steps of SQLite's virtual machine between two checks of the flag. These steps take
/// a few microseconds, or search some tens of pages.
const STEPS: i32 = 500;

/// The number of bytes of the database file that are memory-mapped instead of copied. It is more
/// than the size of the file.
const MAPPED: i64 = 1 << 30;

/// A connection to a SQLite file.
#[derive(Debug)]
pub(crate) struct Sqlite {
    connection: rusqlite::Connection,
    number: u64,
    stop: Arc<AtomicBool>,
}

impl Sqlite {
    pub(crate) fn open(path: &Path) -> Result<Self, DbError> {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let stop = Arc::new(AtomicBool::new(false));
        let open = || {
            let mut connection = rusqlite::Connection::open(path)?;
            connection.busy_timeout(BUSY)?;
            connection.pragma_update(None, "journal_mode", "WAL")?;
            // If the process is killed, nothing that was committed is lost. A power failure may
            // lose the last commits.
            connection.pragma_update(None, "synchronous", "NORMAL")?;
            connection.pragma_update(None, "mmap_size", MAPPED)?;
            let asked = Arc::clone(&stop);
            connection.progress_handler(STEPS, Some(move || asked.load(Ordering::Relaxed)))?;
            Ok(connection)
        };
        let connection =
            open().map_err(|cause: rusqlite::Error| DbError::Lost(cause.to_string()))?;
        Ok(Self { connection, number: NEXT.fetch_add(1, Ordering::Relaxed), stop })
    }

    fn rows(&self, sql: &str, values: &[Value]) -> rusqlite::Result<Vec<Row>> {
        let mut statement = self.connection.prepare(sql)?;
        let width = statement.column_count();
        let row = |row: &rusqlite::Row<'_>| {
            (0..width).map(|column| read(row, column)).collect::<Result<_, _>>().map(Row)
        };
        statement.query_map(params_from_iter(values), row)?.collect()
    }
}

impl Connection for Sqlite {
    fn number(&self) -> u64 {
        self.number
    }

    fn query(&mut self, sql: &str, values: &[Value]) -> Result<Vec<Row>, DbError> {
        self.rows(sql, values).map_err(db_error)
    }

    fn change(&mut self, sql: &str, values: &[Value]) -> Result<u64, DbError> {
        let changed = self.connection.execute(sql, params_from_iter(values)).map_err(db_error)?;
        Ok(changed as u64)
    }

    fn command(&mut self, sql: &str) -> Result<(), DbError> {
        self.connection.execute_batch(sql).map_err(db_error)
    }

    fn stop(&self) -> Option<Arc<AtomicBool>> {
        Some(Arc::clone(&self.stop))
    }
}

impl ToSql for Value {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        let value = match self {
            Self::Null => ValueRef::Null,
            Self::Number(number) => ValueRef::Integer(*number),
            Self::Text(text) => ValueRef::Text(text.as_bytes()),
        };
        Ok(ToSqlOutput::Borrowed(value))
    }
}

fn read(row: &rusqlite::Row<'_>, column: usize) -> rusqlite::Result<Value> {
    Ok(match row.get_ref(column)? {
        ValueRef::Integer(number) => Value::Number(number),
        ValueRef::Text(_) => Value::Text(row.get(column)?),
        // No column of the applications has fractions or blobs. A caller that reads such a field as
        // a number or a text gets an error.
        ValueRef::Null | ValueRef::Real(_) | ValueRef::Blob(_) => Value::Null,
    })
}

#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
fn db_error(error: rusqlite::Error) -> DbError {
    match error.sqlite_error_code() {
        Some(ErrorCode::OperationInterrupted) => DbError::Cancelled,
        // A unique index is the only constraint in use that valid values can violate.
        Some(ErrorCode::ConstraintViolation) => DbError::Duplicate,
        _ => DbError::Failed(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    const ENDLESS: &str = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)
                           SELECT count(*) FROM n";

    #[test]
    fn a_statement_that_never_ends_is_cancelled_and_its_connection_is_used_again() {
        let mut sqlite = Sqlite::open(Path::new(":memory:")).unwrap();
        let stop = sqlite.stop().unwrap();
        let stopper = thread::spawn({
            let stop = Arc::clone(&stop);
            move || stop.store(true, Ordering::Relaxed)
        });
        assert_eq!(sqlite.query(ENDLESS, &[]).unwrap_err(), DbError::Cancelled);
        stopper.join().unwrap();
        stop.store(false, Ordering::Relaxed);
        assert_eq!(sqlite.query("SELECT ? + 1", &[2.into()]).unwrap()[0].number(0), Ok(3));
    }

    #[test]
    fn connections_have_numbers_of_their_own() {
        let [one, other] = [(); 2].map(|()| Sqlite::open(Path::new(":memory:")).unwrap().number());
        assert_ne!(one, other);
    }
}
