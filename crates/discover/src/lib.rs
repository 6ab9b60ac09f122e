//! Which requests cause the load: the elephants among the ants [seed 5.2].
//!
//! From outside an application two things are seen: when each request was worked on, from → to, and how much of a
//! resource (a processor, a disk, connections) was used meanwhile. [`Discovery`] is told both and says what a request
//! of each kind costs, how sure that is, and which few of the kinds are elephants. It is pure: times come in as
//! arguments, nothing is read, nothing is random.
//!
//! # The model
//!
//! Time is cut into windows of one step (a second). Window *t* has a row of weights *x(t, j)*: of each request of kind
//! *j* the part of its span that lies in the window, so that each request weighs one in all. With costs *c(j)* ≥ 0 in
//! seconds of the resource and *y(t)* what was used beyond the idle use,
//!
//! > y(t) = Σ c(j) · x(t, j) + noise
//!
//! - **No intercept.** At saturation *y* is constant, and a free intercept explains a constant best. Without one the mix
//!   of requests still tells their costs, just when an operator needs them. What the resource uses by itself is
//!   [`Resource::idle`]: measured in a quiet hour, or said by the operator.
//! - **Spans, not arrivals.** A picture that each search loads a moment later comes in the same second as the search;
//!   its span is its own.
//! - **Find, then price.** [`find`](mod@find) fits all kinds at once over decayed sums of short windows, and names at
//!   most eight candidates. Short windows find well and price badly: when inside its span a request computes is not
//!   known, which makes costs too low. [`price`](mod@price) fits the candidates and one kind for all others again, over
//!   windows long beside a request, each freed of what the ones before it say of how it errs, with Newey and West's errors;
//!   of all kinds on all resources together no more than one in a hundred that are called elephants may be none by that
//!   (Benjamini and Hochberg).
//! - **Twins.** Kinds that always come together cannot be told apart by anybody; they are one [`Finding`].
//!
//! The seed's own statistic, Pearson's coefficient of requests a second and use a second, is in
//! [`correlation`](mod@correlation): to reproduce its table, and to be shown beside. It calls whatever comes with the
//! elephants an elephant, and everything when the whole load varies.
//!
//! # Rooms
//!
//! [`template`] says of which kind a request is, within bounds; `kinds` which of them are told apart. `rows` spreads requests over windows; `sums`
//! and `ring` are what is remembered of windows; `nnls` solves; `find`, `price`, `false_discovery` and `finding` are
//! the two stages and what comes out.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod columns;
mod correlation;
mod discovery;
mod false_discovery;
mod find;
mod finding;
mod kinds;
mod nnls;
mod price;
mod ring;
mod rows;
mod sums;
pub mod template;

pub use columns::{Column, MOST_COLUMNS};
pub use correlation::Correlation;
pub use discovery::{Discovery, Resource, Seen, Settings};
pub use finding::{Evidence, Finding};
pub use kinds::{Kinds, MOST_KNOWN};
pub use rows::Spread;
