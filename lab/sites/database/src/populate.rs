//! Tables, made and filled once, however many processes want them at the same time.
//!
//! What fills them is one transaction, and with it goes the word that they are full: a database is full or empty,
//! whenever whoever filled it was killed.

use crate::{DbError, Pooled, Value};

/// Rows in one statement.
const BATCH: usize = 100;

/// Makes `tables`, each its name and its columns, where they are missing. Then `found` says what the database knows of
/// itself, and if that is nothing, `fill` fills it and says it too. What it fills has
/// `indices`, each a name, `ON`, and what is indexed.
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
    // Before the word that it is full: what is full has them.
    for index in indices {
        pooled.command(&format!("CREATE INDEX IF NOT EXISTS {index}"))?;
    }
    let facts = pooled.transaction(|pooled| match found(pooled)? {
        // Another process with the same file may have been first.
        Some(facts) => Ok(facts),
        None => fill(pooled),
    })?;
    let analyze = pooled.dialect().analyze;
    for (name, _) in tables {
        pooled.command(&format!("{analyze} {name}"))?;
    }
    Ok(facts)
}

/// Puts rows into a table, many in a statement. `columns` is the table's name and, in brackets, its columns.
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
