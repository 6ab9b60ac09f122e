//! The virtual bookstore of paper 4 (Connection Sentry): the application whose orphaned requests
//! are stopped in its database.
//!
//! The store offers six services and product files over HTTP/1.1: home, search, browse, select, add
//! to cart, and buy. It keeps 4,309 books in SQLite, PostgreSQL or MariaDB. An order counts only if
//! its row is committed.
//!
//! The store is deliberately the plain server of the paper. A fixed number of workers, each with
//! one database connection, take requests from one bounded first-come-first-served queue. A worker
//! does not check during its work whether the client has left. The request of a client that has
//! left is computed to its end, and its cost is counted ([`Stats::busy_us_in_vain`]). Only a
//! cancellation of its statement in the database ends it earlier. Then the answer is 503, and the
//! connection serves the next request.
//!
//! A search reads every page of every book without an index. Showing a book reads half of all
//! pages, and browsing a category reads a ninth of them. These are the ratios of the paper's
//! response times at light load. The number of pages per book ([`Options::pages`]) sets the
//! absolute times.
//!
//! [`trace`] generates a trace with as many sessions and requests as the paper's.
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
pub use options::{Options, Stopd};
pub use request_id::REQUEST_HEADER;
pub use service::Service;
pub use stats::{DatabaseStats, Stats};
pub use store::SchemaError;
