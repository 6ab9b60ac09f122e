//! The auction of paper 5: a site in the manner of `RUBiS`, whose searches are the elephants.
//!
//! `RUBiS`'s PHP pages under their paths, the pages around them that its visitors walk through, and its picture, on SQLite,
//! PostgreSQL or MariaDB. Written anew: what a page does is `RUBiS`'s, how it does it is ours.
//!
//! It is a plain pre-fork server: a fixed number of workers, each with one database connection, take requests from one
//! bounded first-come-first-served queue, static pages included. What costs is the database's: a search joins, counts
//! and sorts, and does so for as many bids as its category has. Every rule of the auction holds however many ask at once.
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
