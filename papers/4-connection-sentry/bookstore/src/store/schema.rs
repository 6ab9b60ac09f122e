//! The tables of the database, which are created and filled once.
//!
//! The books, their pages and the record that they are complete are committed together. If the
//! process that fills the database is killed, the database is therefore either empty or complete.

use bywash_database::{DbError, Dialect, Pooled, Row, Value, insert, populate};

use crate::books::{BOOKS, Book};

/// The schema version, which is incremented whenever a table or a generated page changes. A
/// database with another version is refused, not converted.
const VERSION: i64 = 1;

/// The reason why the database cannot be used by this store.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SchemaError {
    /// The database cannot be reached, or has other tables with the same names.
    #[error("cannot use the database: {0}")]
    Database(String),
    /// The database has another schema version than this program.
    #[error("the database has schema version {found}, but this store needs {VERSION}")]
    Version {
        /// The schema version of the database.
        found: i64,
    },
    /// The database was filled with another number of pages per book.
    #[error(
        "the database has {found} pages per book, not {wanted}: use an empty database for another \
         cost"
    )]
    Pages {
        /// The number of pages per book in the database.
        found: i64,
        /// The number of pages per book that was requested.
        wanted: u32,
    },
}

impl From<DbError> for SchemaError {
    fn from(error: DbError) -> Self {
        Self::Database(error.to_string())
    }
}

/// Creates and fills the tables if they are missing. Returns the number of pages per book in the
/// database. An empty database is filled with `wanted` pages, or `usual` if `wanted` is `None`.
pub(super) fn prepare(
    pooled: &mut Pooled,
    wanted: Option<u32>,
    usual: u32,
) -> Result<u32, SchemaError> {
    let tables = tables(pooled.dialect());
    let facts = populate(pooled, &tables, &[], facts, |pooled| {
        let pages = wanted.unwrap_or(usual);
        fill(pooled, pages)?;
        let facts = "INSERT INTO facts (version, pages) VALUES (?, ?)";
        pooled.change(facts, &[VERSION.into(), i64::from(pages).into()])?;
        Ok(Facts { version: VERSION, pages: pages.into() })
    })?;
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

/// The schema version and the number of pages per book, as recorded in the database.
struct Facts {
    version: i64,
    pages: i64,
}

fn facts(pooled: &mut Pooled) -> Result<Option<Facts>, DbError> {
    let rows = pooled.query("SELECT version, pages FROM facts", &[])?;
    let facts = |row: &Row| Ok(Facts { version: row.number(0)?, pages: row.number(1)? });
    rows.first().map(facts).transpose()
}

fn tables(dialect: &Dialect) -> [(&'static str, String); 6] {
    let auto_increment = dialect.auto_increment;
    [
        ("facts", "version BIGINT NOT NULL, pages BIGINT NOT NULL".to_owned()),
        (
            "books",
            "id BIGINT PRIMARY KEY, title VARCHAR(200) NOT NULL, author VARCHAR(200) NOT NULL,
            category VARCHAR(50) NOT NULL, price_cents BIGINT NOT NULL, description VARCHAR(2000) NOT NULL"
                .to_owned(),
        ),
        (
            "pages",
            "book BIGINT NOT NULL, page BIGINT NOT NULL, text VARCHAR(2000) NOT NULL, PRIMARY KEY (book, page)"
                .to_owned(),
        ),
        (
            "sessions",
            "sid VARCHAR(32) PRIMARY KEY, begun_ms BIGINT NOT NULL, changes BIGINT NOT NULL".to_owned(),
        ),
        (
            "cart",
            "sid VARCHAR(32) NOT NULL, book BIGINT NOT NULL, quantity BIGINT NOT NULL, PRIMARY KEY (sid, book)"
                .to_owned(),
        ),
        (
            "orders",
            format!(
                "id {auto_increment}, sid VARCHAR(32) NOT NULL, books BIGINT NOT NULL, total_cents BIGINT NOT NULL,
                at_ms BIGINT NOT NULL, request VARCHAR(128)"
            ),
        ),
    ]
}

fn fill(pooled: &mut Pooled, pages: u32) -> Result<(), DbError> {
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
