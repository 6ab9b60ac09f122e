//! Creates and fills tables once, even if several processes try at the same time.
//!
//! One transaction inserts the rows, and records that the tables are full. Even if the process that
//! fills the tables is killed, the database is therefore either empty or full.

use crate::{DbError, Pooled, Value};

/// The maximum number of rows inserted by one statement.
const BATCH: usize = 100;

/// Creates those of `tables` that are missing, and fills the tables if they are empty. Each entry
/// of `tables` has a name and the columns. Returns the facts that the database records about its
/// content.
///
/// `found` reads these facts from a full database, and returns `None` for an empty one. If the
/// database is empty, `fill` fills the tables, and records and returns the facts. `indices` are
/// created before the tables are filled; each is a name, `ON`, and the indexed columns.
pub fn populate<F>(
    pooled: &mut Pooled,
    tables: &[(&str, String)],
    indices: &[&str],
    found: impl Fn(&mut Pooled) -> Result<Option<F>, DbError>,
    fill: impl FnOnce(&mut Pooled) -> Result<F, DbError>,
) -> Result<F, DbError> {
    pooled.ready(String::new())?;
    let dialect = pooled.dialect();
    if let Some(lock) = dialect.lock {
        pooled.command(lock)?;
    }
    for (name, columns) in tables {
        pooled
            .command(&format!("CREATE TABLE IF NOT EXISTS {name} ({columns}) {}", dialect.table))?;
    }
    let facts = match found(pooled)? {
        Some(facts) => facts,
        None => populate_empty(pooled, tables, indices, found, fill)?,
    };
    if let Some(unlock) = dialect.unlock {
        pooled.command(unlock)?;
    }
    Ok(facts)
}

fn populate_empty<F>(
    pooled: &mut Pooled,
    tables: &[(&str, String)],
    indices: &[&str],
    found: impl Fn(&mut Pooled) -> Result<Option<F>, DbError>,
    fill: impl FnOnce(&mut Pooled) -> Result<F, DbError>,
) -> Result<F, DbError> {
    // Create the indices before the database is recorded as full, so that a full database always
    // has them.
    for index in indices {
        pooled.command(&format!("CREATE INDEX IF NOT EXISTS {index}"))?;
    }
    let facts = pooled.transaction(|pooled| match found(pooled)? {
        // Another process may have filled the database since the first check.
        Some(facts) => Ok(facts),
        None => fill(pooled),
    })?;
    let analyze = pooled.dialect().analyze;
    for (name, _) in tables {
        pooled.command(&format!("{analyze} {name}"))?;
    }
    Ok(facts)
}

/// Inserts `rows` into a table, up to `BATCH` rows in each statement. `columns` is the table's name
/// followed by its columns in brackets.
pub fn insert(
    pooled: &mut Pooled,
    columns: &str,
    mut rows: impl Iterator<Item = Vec<Value>>,
) -> Result<(), DbError> {
    loop {
        let batch: Vec<_> = rows.by_ref().take(BATCH).collect();
        let Some(first) = batch.first() else { return Ok(()) };
        let row = format!("({})", vec!["?"; first.len()].join(", "));
        let all = vec![row; batch.len()].join(", ");
        pooled.change(&format!("INSERT INTO {columns} VALUES {all}"), &batch.concat())?;
    }
}
