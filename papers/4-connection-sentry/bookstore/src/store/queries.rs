//! The operations that read: the front page, categories, searches, one book.
//!
//! One statement searches pages for all three operations. It has no index of the text, and reads
//! every page of the books that it is given and nothing else. Its cost is therefore proportional to
//! their number. A search reads the whole store, showing a book half of it, browsing a category a
//! ninth ([`crate::books::half`], [`crate::books::shelf`]).

use crate::books::{BOOKS, Book, CATEGORIES, Cents, FAVOURITE, half, shelf};
use bywash_database::{DbError, Pooled, Row};

/// The columns of a [`Book`].
const COLUMNS: &str = "b.id, b.title, b.author, b.category, b.price_cents";

/// The number of books on a page.
const LISTED: u32 = 20;

/// Returns the front page's books.
pub(super) fn front(pooled: &mut Pooled) -> Result<Vec<Book>, DbError> {
    let select = format!("SELECT {COLUMNS} FROM books b WHERE b.id <= 12 ORDER BY b.id");
    pooled.query(&select, &[])?.iter().map(book).collect()
}

/// Returns the books of a category with the most pages that contain [`FAVOURITE`], or `None` if
/// there is no such category.
pub(super) fn browse(
    pooled: &mut Pooled,
    category: Option<&str>,
) -> Result<Option<Vec<Book>>, DbError> {
    let wanted = category.unwrap_or(CATEGORIES[0]);
    let place = CATEGORIES.iter().position(|category| *category == wanted);
    place.map(|place| mentioning(pooled, FAVOURITE, shelf(place))).transpose()
}

/// Returns the books with the most pages that contain `words`, in any case.
pub(super) fn search(pooled: &mut Pooled, words: &str) -> Result<Vec<Book>, DbError> {
    mentioning(pooled, &words.to_ascii_lowercase(), (1, BOOKS.into()))
}

/// Returns one book with its description, and books of the same half on the same subject.
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
