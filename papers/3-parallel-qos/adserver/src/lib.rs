//! The ad server of paper 3 (*QoS in Parallelized E-Commerce Systems*): the application whose requests can be shared out
//! among threads.
//!
//! Advertisers contract impressions of their banners, publishers have slots, pages ask for banners by concepts. It
//! accepts contracts for which there is room, places no banner twice and no two rivals on a page, spreads a contract
//! over its dates, and counts placements and clicks so that a kill neither delivers anything twice nor loses a click
//! that was answered.
//!
//! Pages are served by a pool with two levels (`bywash_levels`): a request of the high level looks for its concepts'
//! banners on several threads, one of the low level on one. All else waits for the disk, and is served by workers that
//! take requests from one bounded first-come-first-served queue.
#![forbid(unsafe_code)]

mod admin;
mod adserver;
mod answer;
mod app_state;
mod capacity;
mod counters;
mod dispatch;
mod error;
mod fill;
mod ids;
mod level;
mod options;
mod placing;
mod pool;
mod request;
mod request_error;
mod serve;
mod snapshot;
mod stats;
mod store;
mod token;
mod trial;
mod values;
mod web;
mod worker;
mod writer;

pub use adserver::AdServer;
pub use error::AdServerError;
pub use level::Level;
pub use options::{Fill, Options};
pub use serve::Selection;
pub use stats::{GoalStats, RequestStats, SelectionStats, Stats, TurnStats};
pub use trial::{Trial, roulette};
