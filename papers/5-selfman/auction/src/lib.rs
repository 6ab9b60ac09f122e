//! The auction site of paper 5, in the manner of `RUBiS`. Its searches are the expensive requests,
//! which paper 5 calls elephants.
//!
//! The site has the PHP pages of `RUBiS` under their original paths, the static pages that visitors
//! need, and a picture. It runs on SQLite, PostgreSQL or MariaDB. The pages do what the pages of
//! `RUBiS` do, but the implementation is new.
//!
//! The site is a plain pre-fork server. A fixed number of workers, each with one database
//! connection, take all requests from one bounded first-come-first-served queue, including requests
//! for static pages. The database causes the cost: a search joins, counts and sorts all bids of its
//! category. Every rule of the auction holds for any number of concurrent requests.
#![forbid(unsafe_code)]

mod action;
mod app_state;
mod auction;
mod error;
mod fixtures;
mod options;
mod page;
mod request;
mod stats;
mod store;
mod web;

pub use auction::Auction;
pub use bywash_database::{DatabaseUrl, DatabaseUrlError, ServiceStats};
pub use error::AuctionError;
pub use fixtures::{CATEGORIES, REGIONS, nickname, password};
pub use options::{Options, Sizes};
pub use page::Page;
pub use stats::{DatabaseStats, Stats};
