//! The auction of paper 5: a site in the manner of `RUBiS`, whose searches are the elephants.
//!
//! The auction has `RUBiS`'s PHP pages under their paths, the pages around them that its visitors
//! use, and its picture, on SQLite, PostgreSQL or MariaDB. The pages do what `RUBiS`'s pages do,
//! but the implementation is new.
//!
//! The auction is a plain pre-fork server: a fixed number of workers, each with one database
//! connection, take requests from one bounded first-come-first-served queue, static pages included.
//! The database causes the cost: a search joins, counts and sorts as many bids as its category has.
//! Every rule of the auction holds for any number of concurrent requests.
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
