//! The virtual bookstore of paper 4 (Connection Sentry): the application whose orphans are stopped in its database.
//!
//! Six services and product files over HTTP/1.1, 4,309 books, in SQLite, PostgreSQL or MariaDB: home, search, browse,
//! select, add to cart, buy. An order *is* a committed row.
//!
//! It is the seed's plain server on purpose. A fixed number of workers, each with one database connection, take requests
//! from one bounded first-come-first-served queue. None looks at its client while it works: what a client who has left
//! had asked for is computed to its end, and what it costs is counted ([`Stats::busy_us_in_vain`]), unless somebody
//! stops it in the database. Then the answer is 503, and the connection serves the next request.
//!
//! A search reads every page of every book without an index, showing a book half of them, a shelf a ninth: the ratios of
//! the seed's response times at light load. How long that is the number of pages says ([`Options::pages`]).
//!
//! [`trace`] makes a trace of sessions of the seed's size.
#![forbid(unsafe_code)]

mod app_state;
mod books;
mod bookstore;
mod calibrate;
mod error;
mod files;
mod lease;
mod options;
mod request;
mod request_id;
mod service;
mod stats;
mod store;
pub mod trace;
mod web;
mod worker;

pub use books::{BOOKS, CATEGORIES};
pub use bookstore::Bookstore;
pub use bywash_database::{DatabaseUrl, DatabaseUrlError, ServiceStats};
pub use calibrate::{Cost, calibrate};
pub use error::BookstoreError;
pub use files::FILES;
pub use options::{Options, Sentry};
pub use request_id::REQUEST_HEADER;
pub use service::Service;
pub use stats::{DatabaseStats, Stats};
pub use store::SchemaError;
