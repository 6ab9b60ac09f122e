//! The operations that write: adding a book to a cart, and turning a cart into an order.
//!
//! Both operations begin by changing the row of the session, which locks the row. A second request
//! of the session waits there for the first. Therefore one cart is ordered once, even if many
//! requests order it at the same time.

use std::time::{SystemTime, UNIX_EPOCH};

use bywash_site::Sid;

use super::{Page, Receipt};
use crate::books::Cents;
use bywash_database::{DbError, Pooled, Value};

/// The result of adding a book to a cart.
pub(super) struct Added {
    pub(super) sid: Sid,
    pub(super) is_new: bool,
    pub(super) books: i64,
}

/// Puts a book into the cart of the session `claimed`. If `claimed` is `None` or unknown, the cart
/// belongs to the new session `fresh`. An unknown identifier is never adopted, because an attacker
/// who planted it would then know the session. Returns `None` if there is no such book.
pub(super) fn add(
    pooled: &mut Pooled,
    claimed: Option<Sid>,
    fresh: Sid,
    book: i64,
) -> Result<Option<Added>, DbError> {
    pooled.transaction(|pooled| {
        let known = pooled.query("SELECT id FROM books WHERE id = ?", &[book.into()])?;
        if known.is_empty() {
            return Ok(None);
        }
        let claimed =
            claimed.map(|sid| Ok(touch(pooled, sid)?.then_some(sid))).transpose()?.flatten();
        let sid = claimed.unwrap_or(fresh);
        if claimed.is_none() {
            let insert = "INSERT INTO sessions (sid, begun_ms, changes) VALUES (?, ?, 0)";
            pooled.change(insert, &[name(sid), now_ms().into()])?;
        }
        let update = "UPDATE cart SET quantity = quantity + 1 WHERE sid = ? AND book = ?";
        if pooled.change(update, &[name(sid), book.into()])? == 0 {
            let insert = "INSERT INTO cart (sid, book, quantity) VALUES (?, ?, 1)";
            pooled.change(insert, &[name(sid), book.into()])?;
        }
        let (books, _) = content(pooled, sid)?;
        Ok(Some(Added { sid, is_new: claimed.is_none(), books }))
    })
}

/// Turns the cart into an order, which records the request that placed it. The order is committed
/// when the function returns. Returns [`Page::EmptyCart`] if the cart is empty or there is no such
/// session.
pub(super) fn buy(
    pooled: &mut Pooled,
    sid: Option<Sid>,
    request: Option<&str>,
) -> Result<Page, DbError> {
    let Some(sid) = sid else { return Ok(Page::EmptyCart) };
    pooled.transaction(|pooled| {
        let is_known = touch(pooled, sid)?;
        let (books, total) = if is_known { content(pooled, sid)? } else { (0, Cents(0)) };
        if books == 0 {
            return Ok(Page::EmptyCart);
        }
        let insert = "INSERT INTO orders (sid, books, total_cents, at_ms, request) VALUES (?, ?, ?, ?, ?) RETURNING id";
        let row = [name(sid), books.into(), total.0.into(), now_ms().into(), request.into()];
        let rows = pooled.query(insert, &row)?;
        let row = rows.first().ok_or_else(|| DbError::Failed("an order without a number".to_owned()))?;
        pooled.change("DELETE FROM cart WHERE sid = ?", &[name(sid)])?;
        Ok(Page::Ordered(Receipt { number: row.number(0)?, total }))
    })
}

/// Changes the row of the session, which locks the row. Returns whether there is such a session.
fn touch(pooled: &mut Pooled, sid: Sid) -> Result<bool, DbError> {
    let update = "UPDATE sessions SET changes = changes + 1 WHERE sid = ?";
    Ok(pooled.change(update, &[name(sid)])? == 1)
}

/// Returns the number of books in the cart of a session, and their total price. The total is
/// computed in Rust, because the type of an SQL sum differs between databases.
fn content(pooled: &mut Pooled, sid: Sid) -> Result<(i64, Cents), DbError> {
    let select = "SELECT cart.quantity, books.price_cents FROM cart
                  JOIN books ON books.id = cart.book WHERE cart.sid = ?";
    let mut all = (0, Cents(0));
    for row in pooled.query(select, &[name(sid)])? {
        let (quantity, price) = (row.number(0)?, row.number(1)?);
        all = (all.0 + quantity, Cents(all.1.0 + quantity * price));
    }
    Ok(all)
}

fn name(sid: Sid) -> Value {
    Value::Text(sid.to_string())
}

/// Returns the present time in milliseconds since 1970; zero if the clock is set before 1970.
fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
