//! Finds the requests that cause the load: the elephants among the ants [paper 5.2].
//!
//! Two things are visible from outside an application. One is when each request was worked on, from
//! start to end. The other is how much of a resource (a processor, a disk, connections) was used
//! meanwhile. [`Discovery`] receives both. It estimates the cost of a request of each route and the
//! certainty of that estimate, and finds the few routes that are elephants. It has no side effects:
//! times are arguments, it reads nothing, and it uses no randomness.
//!
//! # The model
//!
//! Time is divided into windows of one step (a second). Window *t* has a weight *x(t, j)* for each
//! route *j*. Each request of the route adds the fraction of its time span that lies in the window,
//! so that its weights sum to one. The cost *c(j)* ≥ 0 of a request is in seconds of the resource.
//! *y(t)* is the use of the resource beyond its idle use:
//!
//! > y(t) = Σ c(j) · x(t, j) + noise
//!
//! - **No intercept.** At saturation *y* is constant, and a free intercept explains a constant
//!   best. Without an intercept the mix of requests still determines their costs, which is when an
//!   operator needs them most. The use without any request is [`Resource::idle`], which is measured
//!   in a quiet hour or set by the operator.
//! - **Time spans, not arrivals.** A picture that each search loads a moment later arrives in the
//!   same second as the search, but has a time span of its own.
//! - **First find, then price.** [`find`](mod@find) fits all routes at once over decayed sums of
//!   short windows, and names at most eight candidates. Short windows are good for finding and bad
//!   for pricing: it is unknown when within its span a request computes, which makes costs too low.
//!   [`price`](mod@price) fits the candidates again, with one more route for all others. Its
//!   windows are long compared with a request. Each is freed of the error that the preceding
//!   windows predict, and the standard errors are those of Newey and West. Over all routes and
//!   resources, at most one in a hundred reported elephants is expected to be false (Benjamini and
//!   Hochberg).
//! - **Twins.** Routes that always occur together cannot be distinguished by any method. They are
//!   one [`Finding`].
//!
//! The statistic of the paper is Pearson's coefficient of requests per second and use per second.
//! It is in [`correlation`](mod@correlation), to reproduce the paper's table and to be shown for
//! comparison. It calls every route that occurs together with the elephants an elephant. When the
//! whole load varies, it calls all routes elephants.
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
