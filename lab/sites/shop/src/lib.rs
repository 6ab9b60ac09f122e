//! The shop of paper 1 (LIFO-Pri): the application that the laboratory overloads.
//!
//! The shop has eight stages over real HTTP/1.1 and a real SQLite file: main, browse, search,
//! details, login, shipping, payment, confirm. A confirmed order *is* a committed row, so the
//! orders of an experiment can be counted afterwards without relying on a log.
//!
//! The shop is deliberately an ordinary server. A fixed number of worker threads take requests from
//! one bounded first-come-first-served queue, like a process pool behind a listen backlog. When the
//! queue is full, the answer is 503. The shop has no overload control, because that is the task of
//! the gateway in front of it. By default it even continues to work for clients that have left, as
//! CGI did; [`Options::notice_close`] makes it stop.
//!
//! The service time of a request comes with the request (`shop-demand-us`, see [`DEMAND_HEADER`]),
//! so that two shops under comparison get identical work.

mod app_state;
mod counters;
mod error;
mod options;
mod request;
mod shop;
mod stage;
mod stats;
mod store;
mod web;
mod work;

pub use error::ShopError;
pub use options::{Burn, Options};
pub use request::{DEMAND_HEADER, MAX_DEMAND, ORDER_TAG_HEADER};
pub use shop::Shop;
pub use stage::Stage;
pub use stats::{StageStats, Stats};
pub use store::{Cents, Order, orders};
