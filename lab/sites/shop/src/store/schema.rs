//! The tables of the shop's database, and the settings of every connection.

use std::path::Path;

use rusqlite::{Connection, TransactionBehavior};

use super::{BUSY, catalogue};
use crate::ShopError;

/// The version of the tables, which is incremented whenever a table changes. A file of another
/// version is refused and not converted.
const VERSION: i64 = 1;

const TABLES: &str = "
    CREATE TABLE products (
        id          INTEGER PRIMARY KEY,
        name        TEXT NOT NULL,
        category    TEXT NOT NULL,
        price_cents INTEGER NOT NULL
    );
    CREATE TABLE sessions (
        sid      TEXT PRIMARY KEY,
        begun_ms INTEGER NOT NULL,
        customer TEXT,
        address  TEXT,
        payment  TEXT
    ) WITHOUT ROWID;
    CREATE TABLE cart (
        sid      TEXT NOT NULL,
        product  INTEGER NOT NULL,
        quantity INTEGER NOT NULL,
        PRIMARY KEY (sid, product)
    ) WITHOUT ROWID;
    CREATE TABLE orders (
        id          INTEGER PRIMARY KEY,
        session     TEXT NOT NULL,
        total_cents INTEGER NOT NULL,
        at_ms       INTEGER NOT NULL,
        tag         TEXT
    );
";

/// Creates the database file and its tables if they are missing. Fails for a file of another kind
/// or version.
pub(super) fn prepare(path: &Path) -> Result<(), ShopError> {
    let mut connection = connect(path)?;
    let found = make(&mut connection).map_err(database_error(path))?;
    if found == VERSION {
        return Ok(());
    }
    Err(ShopError::Schema { path: path.to_owned(), found, expected: VERSION })
}

/// Opens a connection with the shop's settings. SQLite does not store these settings in the file,
/// so every connection must set them.
pub(super) fn connect(path: &Path) -> Result<Connection, ShopError> {
    let open = || {
        let connection = Connection::open(path)?;
        connection.busy_timeout(BUSY)?;
        connection.pragma_update(None, "journal_mode", "WAL")?;
        connection.pragma_update(None, "synchronous", "NORMAL")?;
        Ok(connection)
    };
    open().map_err(database_error(path))
}

/// Returns a function for `map_err` that reports an error of SQLite together with the file at
/// `path`.
pub(super) fn database_error(path: &Path) -> impl FnOnce(rusqlite::Error) -> ShopError {
    let path = path.to_owned();
    move |cause| ShopError::Database { path, cause }
}

/// Creates the tables in an empty file. Returns the schema version that the file has afterwards.
fn make(connection: &mut Connection) -> rusqlite::Result<i64> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let is_empty: bool =
        transaction.query_row("SELECT count(*) = 0 FROM sqlite_schema", (), |row| row.get(0))?;
    if is_empty {
        transaction.execute_batch(TABLES)?;
        catalogue::fill(&transaction)?;
        transaction.pragma_update(None, "user_version", VERSION)?;
    }
    let version = transaction.pragma_query_value(None, "user_version", |row| row.get(0))?;
    transaction.commit()?;
    Ok(version)
}
