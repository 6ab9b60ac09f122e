//! Finds the requests that cause the load: the elephants among the ants [paper 5.2].
//!
//! Two things are visible from outside an application: when each request was worked on, from start
//! to end, and how much of a resource (a processor, a disk, connections) was used meanwhile.
//! [`Discovery`] receives both and estimates the cost of a request of each route, the certainty of
//! that estimate, and which few routes are elephants. It is pure: times are arguments, it reads
//! nothing, and it uses no randomness.
//!
//! # The model
//!
//! Time is divided into windows of one step (a second). Window *t* has a row of weights *x(t, j)*:
//! for each request of route *j* the fraction of its time span that lies in the window, so that a
//! request has weight one in total. With costs *c(j)* ≥ 0 in seconds of the resource, and the use
//! *y(t)* beyond the idle use,
//!
//! > y(t) = Σ c(j) · x(t, j) + noise
//!
//! - **No intercept.** At saturation *y* is constant, and a free intercept explains a constant
//!   best. Without an intercept the mix of requests still determines their costs, exactly when an
//!   operator needs them. The resource's own use is [`Resource::idle`], which is measured in a
//!   quiet hour or set by the operator.
//! - **Time spans, not arrivals.** A picture that each search loads a moment later arrives in the
//!   same second as the search, but has a time span of its own.
//! - **Find, then price.** [`find`](mod@find) fits all routes at once over decayed sums of short
//!   windows, and names at most eight candidates. Short windows are good for finding and bad for
//!   pricing: it is unknown when within its span a request computes, which makes costs too low.
//!   [`price`](mod@price) fits the candidates and one route for all others again. Its windows are
//!   long compared with a request, each is freed of the error that the preceding windows predict,
//!   and the standard errors are those of Newey and West. Over all routes and all resources, at
//!   most one in a hundred reported elephants is expected to be false (Benjamini and Hochberg).
//! - **Twins.** Routes that always occur together cannot be distinguished by any method. They are
//!   one [`Finding`].
//!
//! The statistic of the paper, Pearson's coefficient of requests per second and use per second, is
//! in [`correlation`](mod@correlation): to reproduce the paper's table, and to be shown for
//! comparison. It calls every route that occurs together with the elephants an elephant, and all
//! routes when the whole load varies.
//!
//! # Modules
//!
//! - [`template`] gives each request its route, within bounds; `routes` selects the routes that are
//!   distinguished.
//! - `rows` spreads requests over windows; `sums` and `ring` store the windows; `nnls` solves the
//!   least-squares problem.
//! - `find`, `price`, `false_discovery` and `finding` are the two stages and their result.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod columns;
mod correlation;
mod discovery;
mod false_discovery;
mod find;
mod finding;
mod nnls;
mod price;
mod ring;
mod routes;
mod rows;
mod settings;
mod sums;
pub mod template;

pub use columns::{Column, MOST_COLUMNS};
pub use correlation::Correlation;
pub use discovery::{Discovery, Seen};
pub use finding::{Evidence, Finding};
pub use routes::{MOST_KNOWN, Routes};
pub use rows::Spread;
pub use settings::{Resource, Settings};
