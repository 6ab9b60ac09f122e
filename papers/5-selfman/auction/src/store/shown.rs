//! Reads the pages of one item, one user, or one user's account.

use bywash_database::{DbError, Pooled, Row, Value};

use super::{Answer, now};
use crate::action::Action;
use crate::request::Credentials;

/// The maximum number of rows in each list on a page.
const LISTED: i64 = 50;

/// One item, as its page shows it.
#[derive(Debug)]
pub(crate) struct Item {
    pub(crate) id: i64,
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) seller: i64,
    pub(crate) seller_name: String,
    pub(crate) initial: i64,
    pub(crate) buy_now: i64,
    pub(crate) quantity: i64,
    pub(crate) bid_count: i64,
    pub(crate) highest: i64,
    pub(crate) is_over: bool,
}

/// One user, as all visitors see the user.
#[derive(Debug)]
pub(crate) struct User {
    pub(crate) nickname: String,
    pub(crate) region: String,
    pub(crate) rating: i64,
    pub(crate) comments: i64,
}

/// A comment on a user, as a page shows it.
#[derive(Debug)]
pub(crate) struct Comment {
    pub(crate) by: i64,
    pub(crate) name: String,
    pub(crate) rating: i64,
    pub(crate) words: String,
}

/// One row of a list of bids or purchases. It has the other user or the item, and the amount or the
/// number of pieces.
#[derive(Debug)]
pub(crate) struct Trade {
    pub(crate) id: i64,
    pub(crate) name: String,
    pub(crate) amount: i64,
}

/// The page of a user's own bids, sales, purchases and comments.
#[derive(Debug)]
pub(crate) struct Account {
    pub(crate) user: User,
    pub(crate) bids: Vec<Trade>,
    pub(crate) sells: Vec<Trade>,
    pub(crate) bought: Vec<Trade>,
    pub(crate) received: Vec<Comment>,
}

/// Returns the id of the user with these credentials, or `None` if there is no such user.
pub(super) fn authenticate(
    pooled: &mut Pooled,
    credentials: &Credentials,
) -> Result<Option<i64>, DbError> {
    let select = "SELECT id FROM users WHERE nickname = ? AND password = ?";
    let values = [credentials.nickname.as_str().into(), credentials.password.as_str().into()];
    pooled.query(select, &values)?.first().map(|row| row.number(0)).transpose()
}

pub(super) fn or_missing<T>(
    found: Result<Option<T>, DbError>,
    answer: impl FnOnce(T) -> Answer,
) -> Result<Answer, DbError> {
    found.map(|found| found.map_or(Answer::Missing("item"), answer))
}

pub(super) fn item(pooled: &mut Pooled, id: i64) -> Result<Option<Item>, DbError> {
    let select = "SELECT i.id, i.name, i.description, i.seller, u.nickname, i.initial_price, i.buy_now, i.quantity,
                  i.bid_count, i.highest, i.ends
                  FROM items i JOIN users u ON u.id = i.seller WHERE i.id = ?";
    let rows = pooled.query(select, &[id.into()])?;
    let Some(row) = rows.first() else { return Ok(None) };
    Ok(Some(Item {
        id: row.number(0)?,
        name: row.text(1)?,
        description: row.text(2)?,
        seller: row.number(3)?,
        seller_name: row.text(4)?,
        initial: row.number(5)?,
        buy_now: row.number(6)?,
        quantity: row.number(7)?,
        bid_count: row.number(8)?,
        highest: row.number(9)?,
        is_over: row.number(10)? <= now(),
    }))
}

pub(super) fn user(pooled: &mut Pooled, id: i64) -> Result<Answer, DbError> {
    let Some(user) = user_of(pooled, id)? else { return Ok(Answer::Missing("user")) };
    Ok(Answer::User { user, received: received_comments(pooled, id)? })
}

pub(super) fn bids(pooled: &mut Pooled, id: i64) -> Result<Answer, DbError> {
    let Some(item) = item(pooled, id)? else { return Ok(Answer::Missing("item")) };
    let select = "SELECT u.id, u.nickname, b.amount FROM bids b JOIN users u ON u.id = b.bidder
                  WHERE b.item = ? ORDER BY b.amount DESC, b.id LIMIT ?";
    Ok(Answer::Bids { item, bids: trades(pooled, select, id)? })
}

/// Returns the form for the details of an action on an item, for the user with these `credentials`.
pub(super) fn form(
    pooled: &mut Pooled,
    action: Action,
    credentials: &Credentials,
    id: i64,
) -> Result<Answer, DbError> {
    if authenticate(pooled, credentials)?.is_none() {
        return Ok(Answer::Unauthenticated);
    }
    or_missing(item(pooled, id), |item| Answer::Form {
        action,
        credentials: credentials.clone(),
        item,
    })
}

pub(super) fn about(pooled: &mut Pooled, credentials: &Credentials) -> Result<Answer, DbError> {
    let Some(id) = authenticate(pooled, credentials)? else { return Ok(Answer::Unauthenticated) };
    let Some(user) = user_of(pooled, id)? else { return Ok(Answer::Unauthenticated) };
    let bids = "SELECT i.id, i.name, max(b.amount) FROM bids b JOIN items i ON i.id = b.item
                WHERE b.bidder = ? GROUP BY i.id, i.name ORDER BY i.id LIMIT ?";
    let sells = "SELECT id, name, highest FROM items WHERE seller = ? ORDER BY id LIMIT ?";
    let bought = "SELECT i.id, i.name, p.quantity FROM purchases p JOIN items i ON i.id = p.item
                  WHERE p.buyer = ? ORDER BY p.id LIMIT ?";
    Ok(Answer::AboutMe(Box::new(Account {
        user,
        bids: trades(pooled, bids, id)?,
        sells: trades(pooled, sells, id)?,
        bought: trades(pooled, bought, id)?,
        received: received_comments(pooled, id)?,
    })))
}

fn user_of(pooled: &mut Pooled, id: i64) -> Result<Option<User>, DbError> {
    let select = "SELECT u.nickname, r.name, u.rating, u.comments FROM users u
                  JOIN regions r ON r.id = u.region WHERE u.id = ?";
    let rows = pooled.query(select, &[id.into()])?;
    let user = |row: &Row| {
        Ok(User {
            nickname: row.text(0)?,
            region: row.text(1)?,
            rating: row.number(2)?,
            comments: row.number(3)?,
        })
    };
    rows.first().map(user).transpose()
}

fn received_comments(pooled: &mut Pooled, user: i64) -> Result<Vec<Comment>, DbError> {
    let select = "SELECT u.id, u.nickname, c.rating, c.words FROM comments c JOIN users u ON u.id = c.from_user
                  WHERE c.to_user = ? ORDER BY c.id DESC LIMIT ?";
    let comment = |row: &Row| {
        Ok(Comment {
            by: row.number(0)?,
            name: row.text(1)?,
            rating: row.number(2)?,
            words: row.text(3)?,
        })
    };
    pooled.query(select, &[user.into(), LISTED.into()])?.iter().map(comment).collect()
}

fn trades(pooled: &mut Pooled, select: &str, of: i64) -> Result<Vec<Trade>, DbError> {
    let trade =
        |row: &Row| Ok(Trade { id: row.number(0)?, name: row.text(1)?, amount: row.number(2)? });
    pooled.query(select, &[of, LISTED].map(Value::from))?.iter().map(trade).collect()
}
