//! The tables, made and filled once.
//!
//! The books, their pages and the word that they are there are committed together: a database is full or empty,
//! whenever whoever filled it was killed.

use crate::books::{BOOKS, Book};
use crate::database::{Dialect, Pooled, Trouble, Value};

/// Raised whenever a table or a page changes; another database is refused, not converted.
const VERSION: i64 = 1;

/// Rows in one statement.
const BATCH: usize = 100;

/// Why the tables are not what this store needs.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SchemaError {
    /// It cannot be reached, or there are other tables of these names in it.
    #[error("cannot use the database: {0}")]
    Database(String),
    /// Made by another version.
    #[error("the database has schema {found}, this store knows {VERSION}")]
    Version {
        /// The one it has.
        found: i64,
    },
    /// Filled with another number of pages.
    #[error(
        "the database has {found} pages a book, not {wanted}: use an empty one for another cost"
    )]
    Pages {
        /// Those there are.
        found: i64,
        /// Those asked for.
        wanted: u32,
    },
}

impl From<Trouble> for SchemaError {
    fn from(trouble: Trouble) -> Self {
        Self::Database(trouble.to_string())
    }
}

/// Makes and fills the tables if they are missing; gives the number of pages a book has.
pub(super) fn prepare(
    pooled: &mut Pooled,
    wanted: Option<u32>,
    usual: u32,
) -> Result<u32, SchemaError> {
    pooled.ready(String::new())?;
    let dialect = pooled.dialect();
    if let Some(alone) = dialect.alone {
        pooled.command(alone)?;
    }
    let facts = make(pooled, dialect, wanted.unwrap_or(usual))?;
    if let Some(together) = dialect.together {
        pooled.command(together)?;
    }
    if facts.version != VERSION {
        return Err(SchemaError::Version { found: facts.version });
    }
    match wanted {
        Some(wanted) if facts.pages != i64::from(wanted) => {
            Err(SchemaError::Pages { found: facts.pages, wanted })
        }
        _ => Ok(facts.pages as u32),
    }
}

/// What the database says of itself.
struct Facts {
    version: i64,
    pages: i64,
}

fn make(pooled: &mut Pooled, dialect: &Dialect, pages: u32) -> Result<Facts, Trouble> {
    for table in tables(dialect) {
        pooled.command(&table)?;
    }
    if let Some(facts) = facts(pooled)? {
        return Ok(facts);
    }
    let made = pooled.transaction(|pooled| {
        // Another process with the same file may have been first.
        if let Some(facts) = facts(pooled)? {
            return Ok(facts);
        }
        fill(pooled, pages)?;
        let facts = "INSERT INTO facts (version, pages) VALUES (?, ?)";
        pooled.change(facts, &[VERSION.into(), i64::from(pages).into()])?;
        Ok(Facts { version: VERSION, pages: pages.into() })
    })?;
    for statement in dialect.settle {
        pooled.command(statement)?;
    }
    Ok(made)
}

fn facts(pooled: &mut Pooled) -> Result<Option<Facts>, Trouble> {
    let rows = pooled.query("SELECT version, pages FROM facts", &[])?;
    let facts =
        |row: &crate::database::Row| Ok(Facts { version: row.number(0)?, pages: row.number(1)? });
    rows.first().map(facts).transpose()
}

fn tables(dialect: &Dialect) -> [String; 6] {
    let Dialect { numbered, table, .. } = dialect;
    [
        "facts (version BIGINT NOT NULL, pages BIGINT NOT NULL)".to_owned(),
        "books (id BIGINT PRIMARY KEY, title VARCHAR(200) NOT NULL, author VARCHAR(200) NOT NULL,
            category VARCHAR(50) NOT NULL, price_cents BIGINT NOT NULL, description VARCHAR(2000) NOT NULL)"
            .to_owned(),
        "pages (book BIGINT NOT NULL, page BIGINT NOT NULL, text VARCHAR(2000) NOT NULL, PRIMARY KEY (book, page))"
            .to_owned(),
        "sessions (sid VARCHAR(32) PRIMARY KEY, begun_ms BIGINT NOT NULL, changes BIGINT NOT NULL)".to_owned(),
        "cart (sid VARCHAR(32) NOT NULL, book BIGINT NOT NULL, quantity BIGINT NOT NULL, PRIMARY KEY (sid, book))"
            .to_owned(),
        format!(
            "orders (id {numbered}, sid VARCHAR(32) NOT NULL, books BIGINT NOT NULL, total_cents BIGINT NOT NULL,
            at_ms BIGINT NOT NULL, request VARCHAR(128))"
        ),
    ]
    .map(|columns| format!("CREATE TABLE IF NOT EXISTS {columns} {table}"))
}

fn fill(pooled: &mut Pooled, pages: u32) -> Result<(), Trouble> {
    let books: Vec<_> = (1..=BOOKS).map(Book::new).collect();
    let rows = books.iter().map(|book| {
        let Book { id, title, author, category, price } = book;
        let description = book.description();
        let texts = [title.as_str(), author, category].map(Value::from);
        let mut row = vec![Value::from(*id)];
        row.extend(texts);
        row.extend([price.0.into(), description.as_str().into()]);
        row
    });
    let columns = "books (id, title, author, category, price_cents, description)";
    insert(pooled, columns, rows)?;
    let numbered = books.iter().flat_map(|book| (0..pages).map(move |page| (book, page)));
    let rows = numbered.map(|(book, page)| {
        vec![book.id.into(), i64::from(page).into(), book.page(page).as_str().into()]
    });
    insert(pooled, "pages (book, page, text)", rows)
}

/// Puts rows into a table, many in a statement.
fn insert(
    pooled: &mut Pooled,
    columns: &str,
    mut rows: impl Iterator<Item = Vec<Value>>,
) -> Result<(), Trouble> {
    loop {
        let batch: Vec<_> = rows.by_ref().take(BATCH).collect();
        let Some(first) = batch.first() else { return Ok(()) };
        let row = format!("({})", vec!["?"; first.len()].join(", "));
        let all = vec![row; batch.len()].join(", ");
        pooled.change(&format!("INSERT INTO {columns} VALUES {all}"), &batch.concat())?;
    }
}
