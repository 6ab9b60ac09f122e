//! Reads the lists: categories, regions, and the results of searches.
//!
//! A search lists the items on sale in descending order of their number of bidders, which is not
//! stored. Each search therefore joins the items of the category with all their bids, counts, and
//! sorts. The cost is proportional to the number of bids in the category, so that it differs widely
//! between categories.
//!
//! A search in a region selects the items whose sellers live there, and also counts the comments on
//! each seller. It has fewer rows, but each row costs more, because the join pairs every bid with
//! every comment.

use bywash_database::{DbError, Pooled, Row};

use super::{Answer, now};
use crate::Page;
use crate::request::Search;

/// The id and name of a category or a region.
#[derive(Debug)]
pub(crate) struct Named {
    pub(crate) id: i64,
    pub(crate) name: String,
}

/// An item in a list of search results.
#[derive(Debug)]
pub(crate) struct Listed {
    pub(crate) id: i64,
    pub(crate) name: String,
    pub(crate) initial: i64,
    /// The amount of the highest bid, in hundredths; zero if there is no bid.
    pub(crate) highest: i64,
    pub(crate) bidders: i64,
}

pub(super) fn categories(pooled: &mut Pooled) -> Result<Vec<Named>, DbError> {
    named(pooled, "SELECT id, name FROM categories ORDER BY id")
}

pub(super) fn regions(pooled: &mut Pooled) -> Result<Vec<Named>, DbError> {
    named(pooled, "SELECT id, name FROM regions ORDER BY id")
}

fn named(pooled: &mut Pooled, select: &str) -> Result<Vec<Named>, DbError> {
    let name = |row: &Row| Ok(Named { id: row.number(0)?, name: row.text(1)? });
    pooled.query(select, &[])?.iter().map(name).collect()
}

pub(super) fn search(pooled: &mut Pooled, search: &Search) -> Result<Answer, DbError> {
    let Search { category, region, page, listed } = *search;
    let (sellers, order, local) = match region {
        None => ("", "", ""),
        Some(_) => (
            "JOIN users u ON u.id = i.seller LEFT JOIN comments c ON c.to_user = u.id",
            "count(DISTINCT c.id) DESC,",
            "AND u.region = ?",
        ),
    };
    let select = format!(
        "SELECT i.id, i.name, i.initial_price, i.highest, count(DISTINCT b.bidder) AS bidders
         FROM items i LEFT JOIN bids b ON b.item = i.id {sellers}
         WHERE i.category = ? AND i.ends > ? {local}
         GROUP BY i.id, i.name, i.initial_price, i.highest
         ORDER BY bidders DESC, {order} i.id LIMIT ? OFFSET ?"
    );
    let mut values = vec![category.into(), now().into()];
    values.extend(region.map(Into::into));
    values.extend([listed.into(), (page * listed).into()]);
    let rows = pooled.query(&select, &values)?;
    let items = rows.iter().map(item).collect::<Result<Vec<_>, _>>()?;
    let next = (items.len().cast_signed() as i64 == listed).then(|| address(search));
    Ok(Answer::Found { items, next })
}

/// Returns the address of the next page of search results.
fn address(search: &Search) -> String {
    let Search { category, region, page, listed } = search;
    let rest = format!("category={category}&page={}&nbOfItems={listed}", page + 1);
    match region {
        None => format!("{}?{rest}", Page::SearchItemsByCategory.path()),
        Some(region) => format!("{}?region={region}&{rest}", Page::SearchItemsByRegion.path()),
    }
}

fn item(row: &Row) -> Result<Listed, DbError> {
    Ok(Listed {
        id: row.number(0)?,
        name: row.text(1)?,
        initial: row.number(2)?,
        highest: row.number(3)?,
        bidders: row.number(4)?,
    })
}
