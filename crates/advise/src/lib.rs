//! Derives a site's properties and a configuration from an access log.
//!
//! A [`Summary`] receives the requests one by one. Its memory is bounded, however long the log is
//! and whatever its lines contain. [`Summary::advice`] derives an [`Advice`] from it: sessions,
//! proposed classes with their utilities, patience, peak load, and elephants. [`file`] writes the
//! configuration. [`WorkloadModel`] draws visitors that behave like those of the log. Nothing in
//! this crate reads a file or a clock.
//!
//! # Bounds
//!
//! | what | bound | beyond the bound |
//! |---|---|---|
//! | templates of URLs | 256 ([`bywash_discover::Routes`]) | one template for all others |
//! | open sessions | [`MOST_SESSIONS`] | the longest idle one is ended, and counted |
//! | first lines, held until eight agree on the time | 64 | the time of most of them is used |
//! | minutes of load | [`MOST_MINUTES`] | counted, but ignored for the peak |
//! | populations of clients | 4096 | the half with the fewest requests join all others |
//! | visits of clients | 2 × [`MOST_SESSIONS`] | those idle for longest are ended |
//! | hosts | 32 | a new host replaces the one with the fewest pages |
//! | distributions | two digits, from a microsecond to a day | |
//!
//! # Modules
//!
//! - `summary` receives requests, and `clock` checks their times.
//! - `routes` maps a request to its template, and `tally` counts the requests of one template.
//! - `visitors`, `sessions` and `graph` reconstruct visitors, their sessions and their transitions.
//! - `minutes` records the load over time, and `patience` how long clients wait.
//! - `hosts` counts the hosts for which requests were made.
//! - `populations` tells populations of clients apart, and finds those that read one page a visit.
//! - `limit` proposes the concurrency limit by `groups` of pages, and `reasons` explains it.
//! - `role` guesses the purpose of a template, `order` finds the order, and `classes` proposes
//!   classes from both.
//! - `advice` is the result, `file` the configuration, and `workload` the model of visitors.
#![forbid(unsafe_code)]

mod advice;
mod classes;
mod clock;
mod file;
mod graph;
mod groups;
mod hosts;
mod limit;
mod load;
mod minutes;
mod order;
mod patience;
mod patterns;
mod populations;
mod reasons;
mod request;
mod role;
mod routes;
mod sessions;
mod summary;
mod tally;
mod times;
mod visitors;
mod workload;

pub use advice::{Advice, Busy, Clients, Counts, Page, Transition};
pub use classes::Proposed;
pub use clock::{agreed, is_near};
pub use file::{Around, file};
pub use hosts::Host;
pub use limit::{By, Capacity, Limit, Machine, Shows};
pub use load::{Load, Seen, Used, Watched};
pub use minutes::{MOST as MOST_MINUTES, Peak};
pub use patience::{Leaving, Patience, PatienceSetting};
pub use populations::{Population, Populations};
pub use request::{Client, End, Kept, Request};
pub use role::Role;
pub use sessions::MOST as MOST_SESSIONS;
pub use summary::{Settings, Summary};
pub use times::{Quantiles, Times};
pub use workload::{Step, WorkloadModel};
