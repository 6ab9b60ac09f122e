//! The shop's database: products, sessions, carts, orders.
//!
//! Each worker has one [`Store`] with its own connection to the same SQLite file. Because of the
//! write-ahead log, readers never wait. Writers of this process take turns on a mutex before
//! `BEGIN IMMEDIATE`. Without the mutex, SQLite makes the second writer poll with sleeps of whole
//! milliseconds, which would count as service time. The busy timeout is for other processes.
//!
//! With `synchronous = NORMAL`, a killed process loses nothing that was committed. A power failure
//! may lose the last orders but leaves a consistent file, which is sufficient for a laboratory.

mod catalogue;
mod order;
mod schema;
mod session;

use std::fs::File;
use std::io;
use std::iter::repeat_with;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rusqlite::{Connection, Transaction, TransactionBehavior};

use bywash_site::Sid;

use crate::request::ParsedRequest;
use crate::{ShopError, Stage};

pub(crate) use catalogue::Product;
pub use order::{Cents, Order, orders};
pub(crate) use order::{Missing, Receipt};

/// The maximum time to wait for another process that writes to the database file.
const BUSY: Duration = Duration::from_secs(2);

/// The number of prepared statements that each connection caches. It is more than the shop has.
const STATEMENTS: usize = 32;

/// One connection to the shop's database, with the lock for writing.
#[derive(Debug)]
pub(crate) struct Store {
    connection: Connection,
    /// The lock that a thread of this process holds while its transaction writes.
    write_lock: Arc<Mutex<()>>,
    /// The file `/dev/urandom`, for session ids.
    entropy: File,
}

/// The answer of one stage of the shop to a request.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) result: StageResult,
    /// The session created for this request; the answer must give its identifier to the client.
    /// `None` if the client has a session.
    pub(crate) new_session: Option<Sid>,
}

/// The result of a stage, which the shop shows to the client.
#[derive(Debug)]
pub(crate) enum StageResult {
    /// The request was successful, with this page as answer.
    Page(Page),
    /// The order cannot be placed, because the session lacks this step.
    Missing(Missing),
    /// The requested product does not exist.
    NoSuchProduct,
    /// The database failed. Standard error has the reason.
    Failed,
}

/// The content of a page.
#[derive(Debug)]
pub(crate) enum Page {
    /// A list of products to choose from.
    Shelf(Vec<Product>),
    /// One product, now in the cart.
    Details(Product),
    /// The page after a successful login: the session now has a customer.
    LoggedIn,
    /// The page after the address is stored in the session.
    AddressKept,
    /// The page after the payment reference is stored in the session.
    PaymentKept,
    /// The page after the order is committed, with its receipt.
    Ordered(Receipt),
}

/// The reason why a request could not be served from the database.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StoreError {
    #[error("{0}")]
    Database(#[from] rusqlite::Error),
    #[error("the operating system provides no random numbers: {0}")]
    Entropy(#[from] io::Error),
}

impl Store {
    /// Opens `count` connections to the database file at `path`. Returns them with the number of
    /// orders in the database.
    pub(crate) fn open_all(path: &Path, count: usize) -> Result<(Vec<Self>, u64), ShopError> {
        let write_lock = Arc::new(Mutex::new(()));
        schema::prepare(path)?;
        let stores: Result<Vec<_>, _> =
            repeat_with(|| Self::open(path, Arc::clone(&write_lock))).take(count).collect();
        Ok((stores?, order::count(path)?))
    }

    fn open(path: &Path, write_lock: Arc<Mutex<()>>) -> Result<Self, ShopError> {
        let connection = schema::connect(path)?;
        connection.set_prepared_statement_cache_capacity(STATEMENTS);
        let entropy = File::open("/dev/urandom").map_err(ShopError::system("/dev/urandom"))?;
        Ok(Self { connection, write_lock, entropy })
    }

    /// Runs the stage of one request. An order is committed before its answer is returned.
    pub(crate) fn serve(&mut self, request: &ParsedRequest) -> Result<Answer, StoreError> {
        let session = self.find_or_create_session(request.sid)?;
        let result = self.stage(session.sid, request)?;
        Ok(Answer { result, new_session: session.is_new.then_some(session.sid) })
    }

    fn stage(&mut self, sid: Sid, request: &ParsedRequest) -> rusqlite::Result<StageResult> {
        let page = match request.stage {
            Stage::Main => self.front().map(Page::Shelf),
            Stage::Browse => self.shelf(request.form.get("category")).map(Page::Shelf),
            Stage::Search => {
                self.search(request.form.get("q").unwrap_or_default()).map(Page::Shelf)
            }
            Stage::Details => return self.details(sid, request.form.get("id")),
            Stage::Login => self.log_in(sid, request.form.get("name")),
            Stage::Shipping => self.ship_to(sid, request.form.get("address")),
            Stage::Payment => self.pay_with(sid, request.form.get("reference")),
            Stage::Confirm => return self.confirm(sid, request.order_tag.as_deref()),
        };
        page.map(StageResult::Page)
    }

    /// Runs `work` as one writing transaction, and commits it. If `work` fails, the transaction is
    /// rolled back.
    fn write<T>(
        &mut self,
        work: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<T> {
        // A poisoned lock leaves nothing unfinished, because SQLite has rolled the transaction
        // back.
        let _held = self.write_lock.lock().unwrap_or_else(PoisonError::into_inner);
        let behavior = TransactionBehavior::Immediate;
        let transaction = self.connection.transaction_with_behavior(behavior)?;
        let made = work(&transaction)?;
        transaction.commit()?;
        Ok(made)
    }
}

/// Returns the milliseconds since 1970; zero if the clock is set before that.
fn unix_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
