//! The operations that read: the front page, categories, searches, and one book.
//!
//! All three operations that list books use the same search statement. It has no index of the text.
//! It reads every page of the books in its range and nothing else, so its cost is proportional to
//! the number of these books. A search reads the whole catalogue, showing a book reads half of it,
//! and browsing a category reads a ninth ([`crate::books::half`], [`crate::books::shelf`]).

use crate::books::{BOOKS, Book, CATEGORIES, Cents, FAVOURITE, half, shelf};
use bywash_database::{DbError, Pooled, Row};

/// The columns from which a [`Book`] is read.
const COLUMNS: &str = "b.id, b.title, b.author, b.category, b.price_cents";

/// The maximum number of books in a list.
const LISTED: u32 = 20;

/// Returns the twelve books of the front page.
pub(super) fn front(pooled: &mut Pooled) -> Result<Vec<Book>, DbError> {
    let select = format!("SELECT {COLUMNS} FROM books b WHERE b.id <= 12 ORDER BY b.id");
    pooled.query(&select, &[])?.iter().map(book).collect()
}

/// Returns the books of a category with the most pages that contain [`FAVOURITE`]. Returns `None`
/// if there is no such category.
pub(super) fn browse(
    pooled: &mut Pooled,
    category: Option<&str>,
) -> Result<Option<Vec<Book>>, DbError> {
    let wanted = category.unwrap_or(CATEGORIES[0]);
    let place = CATEGORIES.iter().position(|category| *category == wanted);
    place.map(|place| mentioning(pooled, FAVOURITE, shelf(place))).transpose()
}

/// Returns the books with the most pages that contain the text `words`, regardless of case.
pub(super) fn search(pooled: &mut Pooled, words: &str) -> Result<Vec<Book>, DbError> {
    mentioning(pooled, &words.to_ascii_lowercase(), (1, BOOKS.into()))
}

/// Returns one book, its description, and the books of its half of the catalogue on the same
/// subject. Returns `None` if there is no such book.
pub(super) fn select(
    pooled: &mut Pooled,
    id: i64,
) -> Result<Option<(Book, String, Vec<Book>)>, DbError> {
    let select = format!("SELECT {COLUMNS}, b.description FROM books b WHERE b.id = ?");
    let rows = pooled.query(&select, &[id.into()])?;
    let Some(row) = rows.first() else { return Ok(None) };
    let (book, description) = (book(row)?, row.text(5)?);
    let near = mentioning(pooled, &book.subject(), half(id))?;
    Ok(Some((book, description, near)))
}

fn mentioning(
    pooled: &mut Pooled,
    words: &str,
    (first, last): (i64, i64),
) -> Result<Vec<Book>, DbError> {
    let position = pooled.dialect().position;
    let select = format!(
        "SELECT {COLUMNS} FROM books b JOIN (
            SELECT book, count(*) AS hits FROM pages
            WHERE book BETWEEN ? AND ? AND {position}(text, ?) > 0 GROUP BY book
         ) found ON found.book = b.id
         ORDER BY found.hits DESC, b.id LIMIT {LISTED}"
    );
    let rows = pooled.query(&select, &[first.into(), last.into(), words.into()])?;
    rows.iter().map(book).collect()
}

fn book(row: &Row) -> Result<Book, DbError> {
    Ok(Book {
        id: row.number(0)?,
        title: row.text(1)?,
        author: row.text(2)?,
        category: row.text(3)?,
        price: Cents(row.number(4)?),
    })
}
