//! The shop's products, which are generated once. The browsing stages read them.

use bywash_site::Sid;
use rusqlite::{Connection, OptionalExtension, Row, ToSql, params};

use super::{Cents, Page, StageResult, Store};

/// The id of the product that `/details` shows if the request names none.
const PRODUCT_OF_THE_DAY: i64 = 1;

const MAKES: [&str; 20] = [
    "Amber", "Birch", "Cobalt", "Dune", "Ember", "Fern", "Granite", "Harbour", "Indigo", "Juniper",
    "Kelp", "Linen", "Maple", "Nickel", "Ochre", "Pine", "Quartz", "Russet", "Slate", "Tidal",
];

/// The kinds of products, each with its category.
const KINDS: [(&str, &str); 20] = [
    ("desk lamp", "light"),
    ("floor lamp", "light"),
    ("lantern", "light"),
    ("candle", "light"),
    ("armchair", "seats"),
    ("stool", "seats"),
    ("bench", "seats"),
    ("rocking chair", "seats"),
    ("teapot", "kitchen"),
    ("kettle", "kitchen"),
    ("bread knife", "kitchen"),
    ("mixing bowl", "kitchen"),
    ("rug", "textiles"),
    ("blanket", "textiles"),
    ("cushion", "textiles"),
    ("curtain", "textiles"),
    ("notebook", "paper"),
    ("calendar", "paper"),
    ("poster", "paper"),
    ("envelope set", "paper"),
];

/// One product.
#[derive(Debug)]
pub(crate) struct Product {
    pub(crate) id: i64,
    pub(crate) name: String,
    pub(crate) category: String,
    pub(crate) price: Cents,
}

/// Fills an empty table with the whole catalogue of 400 products, one for each combination of a
/// make and a kind.
pub(super) fn fill(connection: &Connection) -> rusqlite::Result<()> {
    let insert = "INSERT INTO products (id, name, category, price_cents) VALUES (?1, ?2, ?3, ?4)";
    let mut insert = connection.prepare(insert)?;
    let products = MAKES.iter().flat_map(|make| KINDS.iter().map(move |kind| (make, kind)));
    for (id, (make, (kind, category))) in (1_i64..).zip(products) {
        insert.execute(params![id, format!("{make} {kind}"), category, price_of(id)])?;
    }
    Ok(())
}

/// Returns the price of a product in hundredths of the currency, from 1.99 to 99.99. The price
/// looks arbitrary, but is the same in every shop.
fn price_of(id: i64) -> i64 {
    199 + id * 37 % 99 * 100
}

impl Store {
    /// Returns the products of the front page.
    pub(super) fn front(&self) -> rusqlite::Result<Vec<Product>> {
        let select = "SELECT id, name, category, price_cents FROM products ORDER BY id LIMIT 12";
        self.products(select, &[])
    }

    /// Returns the cheapest products of `category`, or of all categories if `category` is `None`.
    pub(super) fn shelf(&self, category: Option<&str>) -> rusqlite::Result<Vec<Product>> {
        let select = "SELECT id, name, category, price_cents FROM products
                      WHERE ?1 IS NULL OR category = ?1 ORDER BY price_cents, id LIMIT 20";
        self.products(select, &[&category])
    }

    /// Returns the products whose name contains `words`, ignoring case.
    pub(super) fn search(&self, words: &str) -> rusqlite::Result<Vec<Product>> {
        let select = "SELECT id, name, category, price_cents FROM products
                      WHERE instr(lower(name), lower(?1)) > 0 ORDER BY name LIMIT 20";
        self.products(select, &[&words])
    }

    /// Returns the page of one product, and puts the product into the session's cart. The session
    /// of paper 1 has no separate stage for adding to the cart.
    pub(super) fn details(&mut self, sid: Sid, id: Option<&str>) -> rusqlite::Result<StageResult> {
        let id = id.map_or(Ok(PRODUCT_OF_THE_DAY), str::parse);
        let product = id.ok().map(|id| self.product(id)).transpose()?.flatten();
        let Some(product) = product else {
            return Ok(StageResult::NoSuchProduct);
        };
        self.put_into_cart(sid, product.id)?;
        Ok(StageResult::Page(Page::Details(product)))
    }

    fn product(&self, id: i64) -> rusqlite::Result<Option<Product>> {
        let select = "SELECT id, name, category, price_cents FROM products WHERE id = ?1";
        self.connection.prepare_cached(select)?.query_row([id], read).optional()
    }

    fn products(&self, select: &str, values: &[&dyn ToSql]) -> rusqlite::Result<Vec<Product>> {
        self.connection.prepare_cached(select)?.query_map(values, read)?.collect()
    }

    fn put_into_cart(&mut self, sid: Sid, product: i64) -> rusqlite::Result<()> {
        self.write(|transaction| {
            let put = "INSERT INTO cart (sid, product, quantity) VALUES (?1, ?2, 1)
                       ON CONFLICT DO UPDATE SET quantity = quantity + 1";
            transaction.prepare_cached(put)?.execute(params![sid.to_string(), product])
        })?;
        Ok(())
    }
}

fn read(row: &Row<'_>) -> rusqlite::Result<Product> {
    Ok(Product {
        id: row.get(0)?,
        name: row.get(1)?,
        category: row.get(2)?,
        price: Cents(row.get(3)?),
    })
}
