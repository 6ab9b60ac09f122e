//! The ad server of paper 3 (*QoS in Parallelized E-Commerce Systems*): an application whose
//! requests can be divided among threads.
//!
//! Advertisers contract impressions of their banners, publishers have slots, and pages request
//! banners by concepts. The server accepts contracts for which there is capacity. It places no
//! banner twice on a page, and no two rivals. It spreads a contract over its dates. It counts
//! placements and clicks so that a kill neither delivers an impression twice nor loses an answered
//! click.
//!
//! A pool with two levels (`bywash_levels`) serves pages: a request of the high level searches for
//! the banners of its concepts on several threads, one of the low level on one. Clicks go to the
//! thread that writes to the database. Workers serve all other requests, which wait for the disk,
//! from one bounded queue in order of arrival.
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
