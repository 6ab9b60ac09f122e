//! What an access log tells of a site, and the configuration that follows from it.
//!
//! A [`Summary`] is told of one request after the other and holds a bounded part of what it was told, however long
//! the log is and whoever wrote its lines. [`Summary::advice`] makes an [`Advice`] of it: sessions, proposed classes
//! with their utilities, patience, peak load, elephants. [`file`] writes the configuration, [`Crowd`] draws visitors
//! who behave like those of the log, for whoever plays them. Nothing here reads a file or a clock.
//!
//! # What is bounded
//!
//! | what | bound | beyond it |
//! |---|---|---|
//! | templates of URLs | 256 ([`bywash_discover::Kinds`]) | one template for all others |
//! | open sessions | [`MOST_SESSIONS`] | the one that was idle longest is over, and counted |
//! | first lines, held until eight agree what time it is | 64 | the first of those with which most agree |
//! | minutes of load | [`MOST_MINUTES`] | counted, and not looked at for the peak |
//! | distributions | two digits, from a microsecond to a day | |
//!
//! # Rooms
//!
//! `summary` is told; `moment` judges its clock; `kinds` says of which template a request is, `tally` what is counted
//! of one; `guests`, `sessions` and `graph` are who asked for what after what; `minutes` is load over time, `patience` who left
//! when; `limit` is how many requests should run at once, and `reasons` says why. `role` guesses what a template is for, `order` which one is the order, `classes` makes proposals of both.
//! `advice` is the outcome, `file` the configuration, `crowd` its visitors.
#![forbid(unsafe_code)]

mod advice;
mod classes;
mod crowd;
mod file;
mod graph;
mod guests;
mod kinds;
mod limit;
mod load;
mod minutes;
mod moment;
mod order;
mod patience;
mod patterns;
mod reasons;
mod request;
mod role;
mod sessions;
mod summary;
mod tally;
mod times;

pub use advice::{Advice, Busy, Clients, Counts, Page, Way};
pub use classes::Proposed;
pub use crowd::{Crowd, Step};
pub use file::{Around, file};
pub use limit::{By, Capacity, Limit, Machine, Shows};
pub use load::{Load, Seen, Used, Watched};
pub use minutes::{MOST as MOST_MINUTES, Peak};
pub use moment::{agreed, is_near};
pub use patience::{Leaving, Patience, Told};
pub use request::{Client, End, Kept, Request};
pub use role::Role;
pub use sessions::MOST as MOST_SESSIONS;
pub use summary::{Settings, Summary};
pub use times::{Quantiles, Times};
