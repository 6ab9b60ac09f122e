//! Orders, which the experiments count.

use std::fmt;
use std::path::Path;

use bywash_site::Sid;
use rusqlite::{Connection, OpenFlags, Row, Transaction, params};

use super::schema::database_error;
use super::{BUSY, Page, StageResult, Store, unix_ms};
use crate::ShopError;

/// An amount of money in hundredths of the currency.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cents(pub i64);

/// A committed order in the shop's database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    /// The session that placed the order, as 32 hexadecimal digits.
    pub session: String,
    /// The client's own tag, from the header `shop-order-tag`; `None` if the client sent none.
    pub tag: Option<String>,
    /// The total price of the cart.
    pub total: Cents,
    /// The time of the order, in milliseconds since 1970.
    pub at_ms: i64,
}

/// The confirmation of an order to the customer.
#[derive(Debug)]
pub(crate) struct Receipt {
    pub(crate) number: i64,
    pub(crate) total: Cents,
}

/// The step of a visit that a session lacks before it can order. The variants are in the order of a
/// visit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Missing {
    Cart,
    Login,
    Shipping,
    Payment,
}

impl fmt::Display for Cents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.0 < 0 { "-" } else { "" };
        let size = self.0.unsigned_abs();
        write!(f, "{sign}{}.{:02}", size / 100, size % 100)
    }
}

/// Returns all orders in the database of a running or stopped shop, oldest first. Only reads the
/// database file, and fails if the file does not exist.
pub fn orders(database: &Path) -> Result<Vec<Order>, ShopError> {
    let read = || -> rusqlite::Result<Vec<Order>> {
        let select = "SELECT session, tag, total_cents, at_ms FROM orders ORDER BY id";
        reader(database)?.prepare(select)?.query_map((), order)?.collect()
    };
    read().map_err(database_error(database))
}

/// Returns the number of orders in the database file.
pub(super) fn count(database: &Path) -> Result<u64, ShopError> {
    let read = || -> rusqlite::Result<i64> {
        reader(database)?.query_row("SELECT count(*) FROM orders", (), |row| row.get(0))
    };
    read().map(i64::unsigned_abs).map_err(database_error(database))
}

fn reader(database: &Path) -> rusqlite::Result<Connection> {
    let connection = Connection::open_with_flags(database, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    connection.busy_timeout(BUSY)?;
    Ok(connection)
}

fn order(row: &Row<'_>) -> rusqlite::Result<Order> {
    Ok(Order {
        session: row.get(0)?,
        tag: row.get(1)?,
        total: Cents(row.get(2)?),
        at_ms: row.get(3)?,
    })
}

impl Store {
    /// Turns the cart of the session into an order. If a step is missing, returns that step
    /// instead. The check and the order are one transaction, so that two simultaneous requests
    /// cannot order the same cart twice.
    pub(super) fn confirm(&mut self, sid: Sid, tag: Option<&str>) -> rusqlite::Result<StageResult> {
        self.write(|transaction| match basket(transaction, sid)? {
            Ok(total) => {
                let receipt = place(transaction, sid, tag, total)?;
                Ok(StageResult::Page(Page::Ordered(receipt)))
            }
            Err(missing) => Ok(StageResult::Missing(missing)),
        })
    }
}

/// Returns the total price of the session's cart if the session may order, or else the first step
/// that the session lacks.
fn basket(transaction: &Transaction<'_>, sid: Sid) -> rusqlite::Result<Result<Cents, Missing>> {
    let select = "SELECT (SELECT sum(quantity * price_cents) FROM cart
                          JOIN products ON products.id = product WHERE cart.sid = ?1),
                         customer IS NOT NULL, address IS NOT NULL, payment IS NOT NULL
                  FROM sessions WHERE sid = ?1";
    transaction.prepare_cached(select)?.query_row([sid.to_string()], |row| {
        let total: Option<i64> = row.get(0)?;
        Ok(match (total, row.get(1)?, row.get(2)?, row.get(3)?) {
            (None, ..) => Err(Missing::Cart),
            (_, false, ..) => Err(Missing::Login),
            (_, _, false, _) => Err(Missing::Shipping),
            (_, _, _, false) => Err(Missing::Payment),
            (Some(total), true, true, true) => Ok(Cents(total)),
        })
    })
}

/// Writes the order, and removes the session's cart and payment. Customer and address stay for the
/// next order.
fn place(
    transaction: &Transaction<'_>,
    sid: Sid,
    tag: Option<&str>,
    total: Cents,
) -> rusqlite::Result<Receipt> {
    let sid = sid.to_string();
    let insert = "INSERT INTO orders (session, total_cents, at_ms, tag) VALUES (?1, ?2, ?3, ?4)";
    transaction.prepare_cached(insert)?.execute(params![sid, total.0, unix_ms(), tag])?;
    let number = transaction.last_insert_rowid();
    transaction.prepare_cached("DELETE FROM cart WHERE sid = ?1")?.execute([&sid])?;
    let used = "UPDATE sessions SET payment = NULL WHERE sid = ?1";
    transaction.prepare_cached(used)?.execute([&sid])?;
    Ok(Receipt { number, total })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn money_is_written_with_two_decimals() {
        assert_eq!(Cents(0).to_string(), "0.00");
        assert_eq!(Cents(1_205).to_string(), "12.05");
        assert_eq!(Cents(-5).to_string(), "-0.05");
    }
}
