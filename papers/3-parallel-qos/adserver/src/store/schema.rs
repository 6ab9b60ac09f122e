//! The tables of the database, and the set-up of a connection.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, TransactionBehavior};

use crate::AdServerError;
use crate::token::Key;

/// The schema version, raised whenever a table changes. A file with another version is refused, not
/// converted.
const VERSION: i64 = 1;

/// The maximum time to wait for another process that uses the database file.
const BUSY: Duration = Duration::from_secs(2);

/// The maximum number of statements that stay prepared, which is more than the server has.
const STATEMENTS: usize = 32;

/// The SQL that creates the tables. The `reserved` impressions of a banner are committed before any
/// of them is delivered, and count as delivered after a kill.
const TABLES: &str = "
    CREATE TABLE server (
        key  BLOB NOT NULL,
        boot INTEGER NOT NULL
    );
    CREATE TABLE concepts (
        id   INTEGER PRIMARY KEY,
        word TEXT NOT NULL UNIQUE
    );
    CREATE TABLE publishers (
        id   INTEGER PRIMARY KEY,
        name TEXT NOT NULL
    );
    CREATE TABLE slots (
        id         INTEGER PRIMARY KEY,
        publisher  INTEGER NOT NULL,
        size       TEXT NOT NULL,
        per_day    INTEGER NOT NULL,
        is_removed INTEGER NOT NULL DEFAULT 0,
        placements INTEGER NOT NULL DEFAULT 0,
        clicks     INTEGER NOT NULL DEFAULT 0
    );
    CREATE TABLE slot_concepts (
        slot    INTEGER NOT NULL,
        concept INTEGER NOT NULL,
        PRIMARY KEY (slot, concept)
    ) WITHOUT ROWID;
    CREATE TABLE contracts (
        id           INTEGER PRIMARY KEY,
        advertiser   TEXT NOT NULL,
        from_s       INTEGER NOT NULL,
        to_s         INTEGER NOT NULL,
        cancelled_at INTEGER
    );
    CREATE TABLE banners (
        id         INTEGER PRIMARY KEY,
        contract   INTEGER NOT NULL,
        landing    TEXT NOT NULL,
        size       TEXT NOT NULL,
        category   TEXT,
        contracted INTEGER NOT NULL,
        reserved   INTEGER NOT NULL,
        clicks     INTEGER NOT NULL DEFAULT 0,
        CHECK (reserved <= contracted)
    );
    CREATE TABLE banner_concepts (
        banner  INTEGER NOT NULL,
        concept INTEGER NOT NULL,
        PRIMARY KEY (banner, concept)
    ) WITHOUT ROWID;
    CREATE TABLE clicks (
        boot   INTEGER NOT NULL,
        serial INTEGER NOT NULL,
        banner INTEGER NOT NULL,
        slot   INTEGER,
        at     INTEGER NOT NULL,
        PRIMARY KEY (boot, serial)
    ) WITHOUT ROWID;
";

/// Opens the database file, and creates its tables if the file is empty. Returns an error if the
/// file has another schema version.
pub(super) fn open(path: &Path) -> Result<Connection, AdServerError> {
    let mut bytes = [0; Key::LENGTH];
    let entropy = File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut bytes));
    entropy.map_err(AdServerError::system("/dev/urandom"))?;
    let mut connection = connect(path).map_err(database_error(path))?;
    let found = make(&mut connection, bytes).map_err(database_error(path))?;
    if found == VERSION {
        return Ok(connection);
    }
    Err(AdServerError::Schema { path: path.to_owned(), found, expected: VERSION })
}

fn connect(path: &Path) -> rusqlite::Result<Connection> {
    let connection = Connection::open(path)?;
    connection.busy_timeout(BUSY)?;
    // Keep the file locked: two servers on one file would both deliver the same owed impressions.
    connection.pragma_update(None, "locking_mode", "EXCLUSIVE")?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    Ok(connection)
}

/// Returns a function for `map_err` that reports that SQLite failed on the database file at `path`.
pub(super) fn database_error(path: &Path) -> impl FnOnce(rusqlite::Error) -> AdServerError {
    let path = path.to_owned();
    move |cause| AdServerError::Database { path, cause }
}

/// Creates the tables if the database is empty. Returns the schema version that the database has
/// afterwards.
fn make(connection: &mut Connection, key: [u8; Key::LENGTH]) -> rusqlite::Result<i64> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let is_empty: bool =
        transaction.query_row("SELECT count(*) = 0 FROM sqlite_schema", (), |row| row.get(0))?;
    if is_empty {
        transaction.execute_batch(TABLES)?;
        transaction.execute("INSERT INTO server (key, boot) VALUES (?1, 0)", [key])?;
        transaction.pragma_update(None, "user_version", VERSION)?;
    }
    let version = transaction.pragma_query_value(None, "user_version", |row| row.get(0))?;
    transaction.commit()?;
    Ok(version)
}
