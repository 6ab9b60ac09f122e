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
use crate::lease::{Lease, LeaseClient};
use crate::request::{Operation, StoreRequest};
use crate::request_id::comment;
use bywash_database::{DbError, Pool, Pooled};

pub use schema::SchemaError;

/// One worker's way to the database.
pub(crate) struct Store {
    pooled: Pooled,
    /// Told which request uses which connection, if anybody is.
    lease_client: Option<LeaseClient>,
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
    pub(crate) fn new(
        pool: &Pool,
        lease_client: Option<LeaseClient>,
        tags: bool,
    ) -> std::io::Result<Self> {
        Ok(Self { pooled: pool.pooled(), lease_client, tags, entropy: File::open("/dev/urandom")? })
    }

    /// Serves one request. When this returns an order, it is committed.
    ///
    /// A connection may have broken since its last use, with the database behind it there again. So a request whose
    /// first statement meets that is tried once more: none of it has been done, or it only reads. The same goes for
    /// one that cannot be leased.
    pub(crate) fn serve(&mut self, request: &StoreRequest) -> Result<Answer, DbError> {
        let was_there = self.pooled.ready(self.query_tag(request))?;
        match self.serve_leased(request) {
            Err(DbError::Lost(_)) if was_there && self.pooled.begun() <= 1 => self.retry(request),
            Err(DbError::Taken) => self.retry(request),
            answer => answer,
        }
    }

    fn retry(&mut self, request: &StoreRequest) -> Result<Answer, DbError> {
        self.pooled.ready(self.query_tag(request))?;
        self.serve_leased(request)
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
    /// of it runs before the daemon has agreed, and what the daemon does not take back is closed. What writes is not
    /// announced: nobody shall stop it.
    fn serve_leased(&mut self, request: &StoreRequest) -> Result<Answer, DbError> {
        let stop = self.pooled.stop();
        if let Some(stop) = &stop {
            stop.store(false, Ordering::Relaxed);
        }
        let connection = self.pooled.number();
        let lease_client = self.lease_client.clone().filter(|_| request.operation.only_reads());
        let lease = match (&lease_client, &request.id, connection) {
            (Some(lease_client), Some(id), Some(connection)) => {
                let lease = lease_client.lease(id, connection, stop);
                if lease.as_ref().is_err_and(DbError::ends_connection) {
                    self.pooled.discard();
                }
                Some(lease?)
            }
            _ => None,
        };
        let answer = self.answer(request);
        if !lease.is_none_or(Lease::release) {
            self.pooled.discard();
        }
        answer
    }

    fn answer(&mut self, request: &StoreRequest) -> Result<Answer, DbError> {
        let pooled = &mut self.pooled;
        let page = match &request.operation {
            Operation::Home => Page::Home(queries::front(pooled)?),
            Operation::Search(words) => Page::Found(queries::search(pooled, words)?),
            Operation::Browse(category) => queries::browse(pooled, category.as_deref())?
                .map_or(Page::NoSuchCategory, Page::Shelf),
            Operation::Select(id) => queries::select(pooled, *id)?.map_or(
                Page::NoSuchBook,
                |(book, description, near)| Page::Book { book, description, near },
            ),
            Operation::Cart(id) => return self.add(request.sid, *id),
            Operation::Buy => {
                cart::buy(pooled, request.sid, request.id.as_ref().map(RequestId::as_str))?
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

    fn query_tag(&self, request: &StoreRequest) -> String {
        let id = request.id.as_ref().filter(|_| self.tags);
        id.map(comment).unwrap_or_default()
    }
}
