//! The shop of paper 1 (LIFO-Pri): the application that the laboratory overloads.
//!
//! Eight stages over real HTTP/1.1 and a real SQLite file: main, browse, search, details, login,
//! shipping, payment, confirm. A confirmed order *is* a committed row, so what an experiment
//! earned can be counted afterwards without believing anybody's log.
//!
//! It is an ordinary server on purpose. A fixed number of worker threads take requests from one
//! bounded first-come-first-served queue, as a process pool behind a listen backlog does; when the
//! queue is full the answer is 503. It does nothing clever about overload, because what is clever
//! belongs in front of it. By default it even works on for clients who have left, as CGI did;
//! [`Options::notice_close`] makes it the better citizen.
//!
//! How long a request occupies its worker comes with the request (`shop-demand-us`, see
//! [`DEMAND_HEADER`]), so that two shops under comparison are given identical work.

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
