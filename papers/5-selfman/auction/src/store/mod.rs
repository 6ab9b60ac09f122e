//! The database side of the auction site: runs the statements of requests. Each worker has one
//! [`Store`] with its own connection.

mod lists;
mod schema;
mod shown;
mod trade;

use std::time::{SystemTime, UNIX_EPOCH};

use bywash_database::{DbError, Pool, Pooled};

use crate::action::{Action, StaticPage};
use crate::request::{Credentials, Operation};

pub(crate) use lists::{Listed, Named};
pub(crate) use schema::prepare;
pub(crate) use shown::{Account, Comment, Item, Trade, User};

/// The database access of one worker.
pub(crate) struct Store {
    pooled: Pooled,
}

/// The answer to a request, from which the page is rendered.
#[derive(Debug)]
pub(crate) enum Answer {
    Static(StaticPage),
    Auth {
        action: Action,
        item: i64,
    },
    Categories {
        categories: Vec<Named>,
        region: Option<i64>,
        sells: bool,
    },
    Regions(Vec<Named>),
    /// The items found by a search, and the address of the next page of results. `next` is `None`
    /// if there are no more results.
    Found {
        items: Vec<Listed>,
        next: Option<String>,
    },
    Item(Item),
    User {
        user: User,
        received: Vec<Comment>,
    },
    Bids {
        item: Item,
        bids: Vec<Trade>,
    },
    /// The form for the details of an action on an item, for an authenticated user.
    Form {
        action: Action,
        credentials: Credentials,
        item: Item,
    },
    SellForm {
        category: i64,
    },
    AboutMe(Box<Account>),
    /// The action was performed and committed.
    Done(&'static str),
    /// The named item or user does not exist.
    Missing(&'static str),
    /// No user has the given nickname and password.
    Unauthenticated,
    /// The action is not possible now, for the given reason.
    Declined(&'static str),
}

impl Store {
    pub(crate) fn new(pool: &Pool) -> Self {
        Self { pooled: pool.pooled() }
    }

    /// Opens the database connection before the first request needs it.
    pub(crate) fn open(&mut self) -> Result<(), DbError> {
        self.pooled.ready(String::new()).map(drop)
    }

    /// Returns whether a statement of the last request has begun.
    pub(crate) fn has_begun_statement(&self) -> bool {
        self.pooled.begun() > 0
    }

    /// Serves one request. An action that is reported as done is committed.
    ///
    /// A connection may have broken since its last use, although the database is available again.
    /// Therefore a request is retried once if its first statement finds the connection broken. A
    /// retry is safe, because nothing of the request has been done.
    pub(crate) fn serve(&mut self, operation: &Operation) -> Result<Answer, DbError> {
        let was_there = self.pooled.ready(String::new())?;
        match self.answer(operation) {
            Err(DbError::Lost(_)) if was_there && self.pooled.begun() <= 1 => {
                self.pooled.ready(String::new())?;
                self.answer(operation)
            }
            answer => answer,
        }
    }

    fn answer(&mut self, operation: &Operation) -> Result<Answer, DbError> {
        let pooled = &mut self.pooled;
        match operation {
            Operation::Static(page) => Ok(Answer::Static(*page)),
            Operation::Auth { action, item } => Ok(Answer::Auth { action: *action, item: *item }),
            Operation::SellForm { category } => Ok(Answer::SellForm { category: *category }),
            Operation::Categories { region, sells } => {
                lists::categories(pooled).map(|categories| Answer::Categories {
                    categories,
                    region: *region,
                    sells: *sells,
                })
            }
            Operation::Regions => lists::regions(pooled).map(Answer::Regions),
            Operation::Search(search) => lists::search(pooled, search),
            Operation::Item(item) => shown::or_missing(shown::item(pooled, *item), Answer::Item),
            Operation::User(user) => shown::user(pooled, *user),
            Operation::Bids(item) => shown::bids(pooled, *item),
            Operation::AboutMe(credentials) => shown::about(pooled, credentials),
            Operation::Form { action, credentials, item } => {
                shown::form(pooled, *action, credentials, *item)
            }
            Operation::StoreBuyNow { credentials, item, quantity } => {
                trade::buy(pooled, credentials, *item, *quantity)
            }
            Operation::StoreBid { credentials, item, bid } => {
                trade::bid(pooled, credentials, *item, *bid)
            }
            Operation::StoreComment { credentials, item, to, rating, words } => {
                trade::comment(pooled, credentials, *item, *to, (*rating, words))
            }
            Operation::RegisterItem { credentials, sale } => trade::sell(pooled, credentials, sale),
            Operation::RegisterUser { credentials, region } => {
                trade::register(pooled, credentials, *region)
            }
        }
    }
}

/// Returns the present time in seconds since 1970; zero if the clock is set before 1970.
fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}
