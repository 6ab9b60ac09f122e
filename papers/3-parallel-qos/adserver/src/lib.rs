//! The ad server of paper 3 (*QoS in Parallelized E-Commerce Systems*): an application whose
//! requests can be divided among threads.
//!
//! Advertisers contract impressions of their banners, publishers have slots, and pages request
//! banners by concepts. The server accepts a contract only if there is capacity for it. A page
//! never has a banner twice, nor two banners of one category. The impressions of a contract are
//! spread evenly over its dates. If the server is killed, no impression is delivered twice, and no
//! answered click is lost.
//!
//! A pool with two levels (`bywash_levels`) serves pages. A request of the high level searches for
//! the banners of its concepts on several threads, a request of the low level on one. Clicks go to
//! the thread that writes to the database. All other requests wait for the disk. Workers serve them
//! from one bounded queue in order of arrival.
//!
//! # Modules
//!
//! Lowest first. A module uses only those above it in this list; `scripts/check-modules` checks it.
//! - `error.rs`: the errors of a start. `level.rs`: the service level of a request.
//! - `ids.rs`, `values.rs`: the ids and the checked values of stored objects. `token.rs`: tokens
//!   that name placements.
//! - `snapshot/`: the data that requests read.
//! - `capacity/`: checks whether the slots can carry the promised impressions.
//! - `serve/`: selects the banners of a page. `trial/`: tests the fairness and speed of this.
//! - `options.rs`: the options of a server. `request_error.rs`: the errors of requests.
//! - `stats.rs`: the statistics, `counters.rs`: the running totals behind them.
//! - `pool.rs`: the pool that runs the pages.
//! - `answer.rs`: the answers. `request/`: parses requests.
//! - `store/`: the database. `fill.rs`: contracts for the laboratory.
//! - `app_state.rs`: the state that all threads share.
//! - `admin/`: the admin API. `worker.rs`: the threads that serve it.
//! - `placing.rs`: serves one page. `writer.rs`: the thread that writes to the database.
//! - `dispatch.rs`: hands each request to the thread that serves it.
//! - `web/`: the HTTP side.
//! - `adserver.rs`: a running server, from start to stop.
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
