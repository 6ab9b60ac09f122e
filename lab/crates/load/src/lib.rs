//! Runs a scenario in real time against a URL.
//!
//! The load is an open loop: sessions start when the scenario says so, whether or not the site
//! keeps up. Every response time counts from the moment at which the request was *due*. In a closed
//! loop, each connection would wait for its answer before it sends the next request. A closed loop
//! slows down together with the site and then shows no problem (Gil Tene's «coordinated omission»).
//! An open loop can fall behind its own schedule instead. This load generator therefore measures
//! its lag, and declares a run with too much lag invalid.
//!
//! Clients are realistic. A client whose patience ends closes the socket immediately, so that the
//! site can see the departure. Clients retry and give up as the scenario says, and keep their
//! cookies and, while it stays open, their connection. All clients run on one thread, because a
//! visitor waits most of the time. Without threads there are also no locks, whose waiting times
//! would be attributed to the site.
//!
//! # Modules
//!
//! - [`Options`] select the target and the load; `target` is the site's address.
//! - `request` turns an attempt into HTTP, with path templates (`path_template`), form templates
//!   (`form`), heads (`head`) and cookies (`cookie_jar`); `connection` sends one request.
//! - `virtual_user` is one visitor, and `slots` bounds the number of visitors.
//! - `context` is what all visitors share, and `clock` is the time of the run.
//! - `statistics` counts the outcomes, and `verdict` says whether the figures are valid.
//! - `run` starts and ends a run.
//!
//! Two request headers are of use to a target that emulates work: [`DEMAND_HEADER`] and
//! [`ORDER_TAG_HEADER`]. Other targets ignore them.
#![forbid(unsafe_code)]

mod clock;
mod connection;
mod context;
mod cookie_jar;
mod error;
mod form;
mod head;
mod options;
mod path_template;
mod request;
mod run;
mod slots;
mod statistics;
mod target;
mod verdict;
mod virtual_user;

pub use error::LoadError;
pub use head::Head;
pub use options::{Busy, Options};
pub use request::{DEMAND_HEADER, ORDER_TAG_HEADER};
pub use run::{Run, run};
pub use statistics::{Confirmed, Progress};
