//! The tables of the database, which are created and filled once. They are the tables of `RUBiS`,
//! except the table of ended auctions. It is not needed, because the table of items has the end of
//! each auction.
//!
//! Amounts of money are in hundredths of the currency unit, and times are in seconds since 1970.

use bywash_database::{DbError, Dialect, Pool, Pooled, Value, insert, populate};

use super::now;
use crate::fixtures::{CATEGORIES, Comment, Item, REGIONS, home, nickname, password, region};
use crate::{AuctionError, Sizes};

/// The schema version, incremented whenever a table or its initial content changes. A database with
/// another version is refused, not converted.
const VERSION: i64 = 1;

/// The schema version and the sizes of the tables, as recorded in the database.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Facts {
    version: i64,
    sizes: Sizes,
}

/// The statements that create the indices of `RUBiS`. The indices find the rows that a page needs,
/// but they do not store the numbers that searches count.
const INDICES: [&str; 7] = [
    "users_by_region ON users (region)",
    "items_by_category ON items (category)",
    "items_by_seller ON items (seller)",
    "bids_by_item ON bids (item)",
    "bids_by_bidder ON bids (bidder)",
    "comments_by_user ON comments (to_user)",
    "purchases_by_buyer ON purchases (buyer)",
];

/// Creates and fills the tables if they are missing. Returns an error if the database has another
/// schema version or other sizes.
pub(crate) fn prepare(pool: &Pool, sizes: &Sizes) -> Result<(), AuctionError> {
    let mut pooled = pool.pooled();
    let tables = tables(pool.url.dialect());
    let facts = populate(&mut pooled, &tables, &INDICES, facts, |pooled| fill(pooled, sizes))?;
    if facts.version != VERSION {
        return Err(AuctionError::Version { found: facts.version, known: VERSION });
    }
    if facts.sizes != *sizes {
        return Err(AuctionError::Sizes { found: words(&facts.sizes), wanted: words(sizes) });
    }
    Ok(())
}

fn words(sizes: &Sizes) -> String {
    let Sizes { users, items, bids, comments, seed } = sizes;
    format!("{users} users, {items} items, {bids} bids an item, {comments} comments of seed {seed}")
}

fn facts(pooled: &mut Pooled) -> Result<Option<Facts>, DbError> {
    let select = "SELECT version, users, items, bids, comments, seed FROM sizes";
    let rows = pooled.query(select, &[])?;
    let Some(row) = rows.first() else { return Ok(None) };
    let sizes = Sizes {
        users: row.number(1)?,
        items: row.number(2)?,
        bids: row.number(3)?,
        comments: row.number(4)?,
        seed: row.number(5)?.unsigned_abs(),
    };
    Ok(Some(Facts { version: row.number(0)?, sizes }))
}

fn tables(dialect: &Dialect) -> [(&'static str, String); 8] {
    let id = dialect.auto_increment;
    let own = |columns: &str| format!("id {id}, {columns}");
    [
        (
            "sizes",
            "version BIGINT NOT NULL, users BIGINT NOT NULL, items BIGINT NOT NULL, bids BIGINT NOT NULL,
            comments BIGINT NOT NULL, seed BIGINT NOT NULL"
                .to_owned(),
        ),
        ("regions", "id BIGINT PRIMARY KEY, name VARCHAR(50) NOT NULL".to_owned()),
        ("categories", "id BIGINT PRIMARY KEY, name VARCHAR(50) NOT NULL".to_owned()),
        (
            "users",
            own("nickname VARCHAR(30) NOT NULL UNIQUE, password VARCHAR(30) NOT NULL,
            region BIGINT NOT NULL, rating BIGINT NOT NULL, comments BIGINT NOT NULL, since BIGINT NOT NULL"),
        ),
        (
            "items",
            own("name VARCHAR(100) NOT NULL, description VARCHAR(2000) NOT NULL,
            category BIGINT NOT NULL, seller BIGINT NOT NULL, initial_price BIGINT NOT NULL, buy_now BIGINT NOT NULL,
            quantity BIGINT NOT NULL, bid_count BIGINT NOT NULL, highest BIGINT NOT NULL, ends BIGINT NOT NULL"),
        ),
        (
            "bids",
            own("bidder BIGINT NOT NULL, item BIGINT NOT NULL, amount BIGINT NOT NULL, at BIGINT NOT NULL"),
        ),
        (
            "comments",
            own("from_user BIGINT NOT NULL, to_user BIGINT NOT NULL, item BIGINT NOT NULL,
            rating BIGINT NOT NULL, words VARCHAR(1000) NOT NULL, at BIGINT NOT NULL"),
        ),
        (
            "purchases",
            own("buyer BIGINT NOT NULL, item BIGINT NOT NULL, quantity BIGINT NOT NULL, at BIGINT NOT NULL"),
        ),
    ]
}

/// Fills the empty tables. The database numbers rows from 1 in the order of insertion. So the
/// number in the name of a user or an item is the id of its row.
fn fill(pooled: &mut Pooled, sizes: &Sizes) -> Result<Facts, DbError> {
    let opening = now();
    let named = |(id, name): (i64, String)| vec![id.into(), name.as_str().into()];
    let regions = (1..=REGIONS).map(|id| named((id, region(id))));
    insert(pooled, "regions (id, name)", regions)?;
    let categories = (1..).zip(CATEGORIES).map(|(id, name)| named((id, name.to_owned())));
    insert(pooled, "categories (id, name)", categories)?;
    users(pooled, sizes, opening)?;
    let items = (1..=sizes.items).map(|id| item(&Item::new(sizes, id), opening));
    let columns = "items (name, description, category, seller, initial_price, buy_now, quantity, bid_count, highest, ends)";
    insert(pooled, columns, items)?;
    let bids = (1..=sizes.items).flat_map(|id| {
        let bids = Item::new(sizes, id).bids.into_iter();
        bids.map(move |bid| vec![bid.bidder.into(), id.into(), bid.amount.into(), opening.into()])
    });
    insert(pooled, "bids (bidder, item, amount, at)", bids)?;
    let comments = (1..=sizes.comments).map(|number| {
        let Comment { from, to, item, rating } = Comment::new(sizes, number);
        let words = if rating < 0 { "never again" } else { "as it was described" };
        vec![from.into(), to.into(), item.into(), rating.into(), words.into(), opening.into()]
    });
    insert(pooled, "comments (from_user, to_user, item, rating, words, at)", comments)?;
    let row =
        [VERSION, sizes.users, sizes.items, sizes.bids, sizes.comments, sizes.seed.cast_signed()];
    let facts =
        "INSERT INTO sizes (version, users, items, bids, comments, seed) VALUES (?, ?, ?, ?, ?, ?)";
    pooled.change(facts, &row.map(Value::from))?;
    Ok(Facts { version: VERSION, sizes: *sizes })
}

fn users(pooled: &mut Pooled, sizes: &Sizes, opening: i64) -> Result<(), DbError> {
    let mut praise = vec![(0, 0); sizes.users as usize];
    for number in 1..=sizes.comments {
        let comment = Comment::new(sizes, number);
        let (rating, comments) = &mut praise[comment.to as usize - 1];
        (*rating, *comments) = (*rating + comment.rating, *comments + 1);
    }
    let users = (1..=sizes.users).zip(praise).map(|(id, (rating, comments))| {
        let texts = [nickname(id), password(id)].map(Value::Text);
        let numbers = [home(sizes, id), rating, comments, opening].map(Value::from);
        texts.into_iter().chain(numbers).collect()
    });
    insert(pooled, "users (nickname, password, region, rating, comments, since)", users)
}

fn item(item: &Item, opening: i64) -> Vec<Value> {
    let texts = [item.name.as_str(), &item.description].map(Value::from);
    let numbers = [
        item.category,
        item.seller,
        item.initial,
        item.buy_now,
        item.quantity,
        item.bids.len().cast_signed() as i64,
        item.highest(),
        opening + item.ends,
    ];
    texts.into_iter().chain(numbers.map(Value::from)).collect()
}
