//! The ad server of seed 3 (*QoS in Parallelized E-Commerce Systems*): the application whose requests can be shared out
//! among threads.
//!
//! Advertisers contract impressions of their banners, publishers have slots, pages ask for banners by concepts. It
//! accepts contracts for which there is room, places no banner twice and no two rivals on a page, spreads a contract
//! over its dates, and counts placements and clicks so that a kill neither delivers anything twice nor loses a click
//! that was answered.
//!
//! It is an ordinary server on purpose: a fixed number of workers take requests from one bounded first-come-first-served
//! queue. There is nothing clever about overload here: that belongs in front.
#![forbid(unsafe_code)]

mod adserver;
mod ask;
mod board;
mod capacity;
mod counters;
mod error;
mod fault;
mod fill;
mod house;
mod ids;
mod level;
mod office;
mod options;
mod serve;
mod stats;
mod store;
mod terms;
mod token;
mod trial;
mod web;
mod worker;

pub use adserver::AdServer;
pub use error::AdServerError;
pub use level::Level;
pub use options::{Fill, Options};
pub use serve::Selection;
pub use stats::{RequestStats, SelectionStats, Stats};
pub use trial::{Trial, roulette};
