//! The database side of the store: runs the statements of requests, and leases connections from the
//! stop daemon.
//!
//! Each worker has one [`Store`] with its own connection.

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

/// The database access of one worker.
pub(crate) struct Store {
    pooled: Pooled,
    /// The client of the stop daemon; `None` if the store uses no daemon.
    lease_client: Option<LeaseClient>,
    /// Whether each statement begins with a comment that names its request.
    tags: bool,
    /// The open file `/dev/urandom`, from which session identifiers are read.
    entropy: File,
}

/// The answer to a request for a page.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) page: Page,
    /// The session that was created for this request, whose identifier must be sent to the client.
    /// `None` if no session was created.
    pub(crate) new_session: Option<Sid>,
}

/// The content of a page.
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

/// The confirmation of an order, which is shown to the customer.
#[derive(Debug)]
pub(crate) struct Receipt {
    pub(crate) number: i64,
    pub(crate) total: Cents,
}

/// Creates and fills the tables if they are missing. Returns the number of pages per book. An empty
/// database is filled with `wanted` pages, or `usual` if `wanted` is `None`. Returns an error if
/// the database was filled with another number than `wanted`.
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

    /// Serves one request. A returned order is committed.
    ///
    /// A connection may have broken since its last use, although the database is available again.
    /// Therefore a request is retried once if its first statement finds the connection broken. A
    /// retry is safe, because either nothing of the request has been done or the request only
    /// reads. A request whose connection cannot be leased is also retried once.
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

    /// Returns whether a statement of the last request has begun.
    pub(crate) fn has_begun_statement(&self) -> bool {
        self.pooled.begun() > 0
    }

    /// Opens the database connection before the first request needs it.
    pub(crate) fn open(&mut self) -> Result<(), DbError> {
        self.pooled.ready(String::new()).map(drop)
    }

    /// Leases the connection for a request, serves the request, and releases the lease.
    ///
    /// No statement of the request runs before the daemon has answered or has proved unavailable. A
    /// connection whose release the daemon does not confirm is closed. Requests that write are not
    /// leased, so that nothing can stop them.
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
