//! The store on its database: which request asks for what, and who is told that it works there.
//!
//! One [`Store`] per worker, with a connection of its own.

mod cart;
mod queries;
mod schema;

use std::fs::File;
use std::sync::atomic::Ordering;

use bywash_lease::RequestId;
use bywash_site::Sid;

use crate::books::{Book, Cents};
use crate::lease::{Desk, Lease};
use crate::request::{Operation, Visit};
use crate::request_id::comment;
use bywash_database::{DbError, Pool, Pooled};

pub use schema::SchemaError;

/// One worker's way to the database.
pub(crate) struct Store {
    pooled: Pooled,
    /// Told which request uses which connection, if anybody is.
    desk: Option<Desk>,
    /// Whether statements say in a comment whose they are.
    tags: bool,
    /// `/dev/urandom`, for session ids.
    entropy: File,
}

/// What became of a request.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) page: Page,
    /// The session was made for this request and the client must be told its name.
    pub(crate) new_session: Option<Sid>,
}

/// What there is to show.
#[derive(Debug)]
pub(crate) enum Page {
    Home(Vec<Book>),
    Shelf(Vec<Book>),
    Found(Vec<Book>),
    Book { book: Book, description: String, near: Vec<Book> },
    InCart { books: i64 },
    Ordered(Receipt),
    EmptyCart,
    NoSuchBook,
    NoSuchCategory,
}

/// What the customer is told about an order.
#[derive(Debug)]
pub(crate) struct Receipt {
    pub(crate) number: i64,
    pub(crate) total: Cents,
}

/// Makes and fills the tables if they are missing; gives how many pages a book has.
pub(crate) fn prepare(pool: &Pool, wanted: Option<u32>, usual: u32) -> Result<u32, SchemaError> {
    schema::prepare(&mut pool.pooled(), wanted, usual)
}

impl Store {
    pub(crate) fn new(pool: &Pool, desk: Option<Desk>, tags: bool) -> std::io::Result<Self> {
        Ok(Self { pooled: pool.pooled(), desk, tags, entropy: File::open("/dev/urandom")? })
    }

    /// Serves one request. When this returns an order, it is committed.
    ///
    /// A connection may have broken since its last use, with the database behind it there again. So a request whose
    /// first statement meets that is tried once more: none of it has been done, or it only reads. The same goes for
    /// one that cannot be leased.
    pub(crate) fn serve(&mut self, visit: &Visit) -> Result<Answer, DbError> {
        let was_there = self.pooled.ready(self.mark(visit))?;
        match self.lent(visit) {
            Err(DbError::Lost(_)) if was_there && self.pooled.begun() <= 1 => self.again(visit),
            Err(DbError::Taken) => self.again(visit),
            answer => answer,
        }
    }

    fn again(&mut self, visit: &Visit) -> Result<Answer, DbError> {
        self.pooled.ready(self.mark(visit))?;
        self.lent(visit)
    }

    /// Whether the database was asked anything for the last request.
    pub(crate) fn has_asked(&self) -> bool {
        self.pooled.begun() > 0
    }

    /// Makes the connection before anybody needs it.
    pub(crate) fn open(&mut self) -> Result<(), DbError> {
        self.pooled.ready(String::new()).map(drop)
    }

    /// The one place where a request is given a connection and gives it back, and where that is announced: nothing
    /// of it runs before the desk has agreed, and what the desk does not take back is closed. What writes is not
    /// announced: nobody shall stop it.
    fn lent(&mut self, visit: &Visit) -> Result<Answer, DbError> {
        let stop = self.pooled.stop();
        if let Some(stop) = &stop {
            stop.store(false, Ordering::Relaxed);
        }
        let connection = self.pooled.number();
        let desk = self.desk.clone().filter(|_| visit.operation.only_reads());
        let lease = match (&desk, &visit.request, connection) {
            (Some(desk), Some(request), Some(connection)) => {
                let lease = desk.lease(request, connection, stop);
                if lease.as_ref().is_err_and(DbError::ends_connection) {
                    self.pooled.discard();
                }
                Some(lease?)
            }
            _ => None,
        };
        let answer = self.answer(visit);
        if !lease.is_none_or(Lease::release) {
            self.pooled.discard();
        }
        answer
    }

    fn answer(&mut self, visit: &Visit) -> Result<Answer, DbError> {
        let pooled = &mut self.pooled;
        let page = match &visit.operation {
            Operation::Home => Page::Home(queries::front(pooled)?),
            Operation::Search(words) => Page::Found(queries::search(pooled, words)?),
            Operation::Browse(category) => queries::browse(pooled, category.as_deref())?
                .map_or(Page::NoSuchCategory, Page::Shelf),
            Operation::Select(id) => queries::select(pooled, *id)?.map_or(
                Page::NoSuchBook,
                |(book, description, near)| Page::Book { book, description, near },
            ),
            Operation::Cart(id) => return self.add(visit.sid, *id),
            Operation::Buy => {
                cart::buy(pooled, visit.sid, visit.request.as_ref().map(RequestId::as_str))?
            }
        };
        Ok(Answer { page, new_session: None })
    }

    fn add(&mut self, claimed: Option<Sid>, book: i64) -> Result<Answer, DbError> {
        let fresh = Sid::draw(&self.entropy).map_err(|cause| {
            DbError::Failed(format!("the operating system provides no random numbers: {cause}"))
        })?;
        let added = cart::add(&mut self.pooled, claimed, fresh, book)?;
        Ok(added.map_or(Answer { page: Page::NoSuchBook, new_session: None }, |added| Answer {
            page: Page::InCart { books: added.books },
            new_session: added.is_new.then_some(added.sid),
        }))
    }

    fn mark(&self, visit: &Visit) -> String {
        let request = visit.request.as_ref().filter(|_| self.tags);
        request.map(comment).unwrap_or_default()
    }
}
