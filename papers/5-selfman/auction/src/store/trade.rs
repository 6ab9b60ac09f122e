//! The operations that write: bids, purchases, comments, new users and new items.
//!
//! Each rule of the auction is the condition of one `UPDATE`. A second bidder waits at this
//! `UPDATE` for the first, and then the database checks the row again. Therefore every stored bid
//! exceeds the previous highest bid. No more pieces are sold than exist, and nothing is sold after
//! the end of an auction.

use bywash_database::{DbError, Pooled, Value};

use super::shown::{authenticate, item};
use super::{Answer, now};
use crate::request::{Credentials, Sale};

const DAY: i64 = 86_400;

pub(super) fn bid(
    pooled: &mut Pooled,
    credentials: &Credentials,
    id: i64,
    amount: i64,
) -> Result<Answer, DbError> {
    pooled.transaction(|pooled| {
        let Some(bidder) = authenticate(pooled, credentials)? else { return Ok(Answer::Unauthenticated) };
        let update = "UPDATE items SET highest = ?, bid_count = bid_count + 1
                      WHERE id = ? AND ends > ? AND quantity > 0 AND highest < ? AND initial_price <= ?";
        let values = [amount, id, now(), amount, amount].map(Value::from);
        if pooled.change(update, &values)? == 0 {
            return explain_decline(pooled, id, "the bid must exceed the highest and reach the initial price");
        }
        let insert = "INSERT INTO bids (bidder, item, amount, at) VALUES (?, ?, ?, ?)";
        pooled.change(insert, &[bidder, id, amount, now()].map(Value::from))?;
        Ok(Answer::Done("Your bid is the highest now."))
    })
}

/// Buys pieces of an item. The item's auction ends when its last piece is sold.
pub(super) fn buy(
    pooled: &mut Pooled,
    credentials: &Credentials,
    id: i64,
    count: i64,
) -> Result<Answer, DbError> {
    pooled.transaction(|pooled| {
        let Some(buyer) = authenticate(pooled, credentials)? else {
            return Ok(Answer::Unauthenticated);
        };
        let update = "UPDATE items SET quantity = quantity - ?
                      WHERE id = ? AND ends > ? AND quantity >= ? AND buy_now > 0";
        if pooled.change(update, &[count, id, now(), count].map(Value::from))? == 0 {
            return explain_decline(
                pooled,
                id,
                "the item cannot be bought at once, or there are fewer pieces",
            );
        }
        let over = "UPDATE items SET ends = ? WHERE id = ? AND quantity = 0";
        pooled.change(over, &[now(), id].map(Value::from))?;
        let insert = "INSERT INTO purchases (buyer, item, quantity, at) VALUES (?, ?, ?, ?)";
        pooled.change(insert, &[buyer, id, count, now()].map(Value::from))?;
        Ok(Answer::Done("It is yours."))
    })
}

pub(super) fn comment(
    pooled: &mut Pooled,
    credentials: &Credentials,
    id: i64,
    to: i64,
    (rating, words): (i64, &str),
) -> Result<Answer, DbError> {
    pooled.transaction(|pooled| {
        let Some(from) = authenticate(pooled, credentials)? else { return Ok(Answer::Unauthenticated) };
        if item(pooled, id)?.is_none() {
            return Ok(Answer::Missing("item"));
        }
        let update = "UPDATE users SET rating = rating + ?, comments = comments + 1 WHERE id = ?";
        if pooled.change(update, &[rating, to].map(Value::from))? == 0 {
            return Ok(Answer::Missing("user"));
        }
        let insert = "INSERT INTO comments (from_user, to_user, item, rating, words, at) VALUES (?, ?, ?, ?, ?, ?)";
        let [from, to, id, rating, at] = [from, to, id, rating, now()].map(Value::from);
        pooled.change(insert, &[from, to, id, rating, words.into(), at])?;
        Ok(Answer::Done("Your comment is stored."))
    })
}

pub(super) fn sell(
    pooled: &mut Pooled,
    credentials: &Credentials,
    sale: &Sale,
) -> Result<Answer, DbError> {
    pooled.transaction(|pooled| {
        let Some(seller) = authenticate(pooled, credentials)? else { return Ok(Answer::Unauthenticated) };
        let Sale { name, description, category, initial, buy_now, quantity, days } = sale;
        let insert = "INSERT INTO items (name, description, category, seller, initial_price, buy_now, quantity,
                      bid_count, highest, ends) VALUES (?, ?, ?, ?, ?, ?, ?, 0, 0, ?)";
        let texts = [name.as_str(), description].map(Value::from);
        let ends = now() + days * DAY;
        let numbers = [*category, seller, *initial, *buy_now, *quantity, ends].map(Value::from);
        pooled.change(insert, &[&texts[..], &numbers].concat())?;
        Ok(Answer::Done("Your item is on sale."))
    })
}

pub(super) fn register(
    pooled: &mut Pooled,
    credentials: &Credentials,
    region: i64,
) -> Result<Answer, DbError> {
    let made = pooled.transaction(|pooled| {
        let insert = "INSERT INTO users (nickname, password, region, rating, comments, since) VALUES (?, ?, ?, 0, 0, ?)";
        let texts = [credentials.nickname.as_str(), &credentials.password].map(Value::from);
        pooled.change(insert, &[&texts[..], &[region, now()].map(Value::from)].concat())
    });
    match made {
        Ok(_) => Ok(Answer::Done("Welcome.")),
        Err(DbError::Duplicate) => Ok(Answer::Declined("another user has this nickname")),
        Err(error) => Err(error),
    }
}

/// Returns an answer that says why an item was not changed. The reason is that the item does not
/// exist, that its auction is over, or else `why`.
fn explain_decline(pooled: &mut Pooled, id: i64, why: &'static str) -> Result<Answer, DbError> {
    Ok(match item(pooled, id)? {
        None => Answer::Missing("item"),
        Some(item) if item.is_over => Answer::Declined("the auction is over"),
        Some(_) => Answer::Declined(why),
    })
}
