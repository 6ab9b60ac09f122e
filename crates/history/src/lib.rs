//! The outcomes of requests: the last 15 minutes second by second, the last day minute by minute.
//!
//! The gateway counts events and never resets the counts (`counts` has their types). Once a second
//! they are read and passed to [`History::read`], which keeps the differences since the previous
//! reading. A minute is the difference between its ends, not a sum of rounded seconds. Nothing here
//! reads a clock.
//!
//! # Bounds
//!
//! At most [`SECONDS`] and [`MINUTES`] rows are kept, and in each only the classes in which
//! something happened, at 92 bytes each. A site with 64 classes that are all busy all day takes 14
//! MB, a site with eight takes 1.7 MB. Class names are kept once, and at most [`MOST_NAMES`] of
//! them: for further classes nothing is kept.
//!
//! # Time
//!
//! Rows are numbered consecutively and carry the time of the clock. If the clock is set, the times
//! jump but the numbers do not. So a client that has seen row 7 asks for the rows after row 7. A
//! reading that comes late makes one row for the whole time since the previous one, and the row
//! says how long that was.
//!
//! # Modules
//!
//! - `latencies` counts response times in buckets.
//! - `counts` is the input, `row` the difference between two readings, `columns` the form in which
//!   rows are returned and stored.
//! - `history` keeps the rows.
#![forbid(unsafe_code)]

mod columns;
mod counts;
mod history;
mod latencies;
mod row;

pub use columns::{ClassColumns, Columns, OutcomeCounts, Outcomes, Shadow};
pub use counts::{ClassCounts, Gauges, Reading, Shadowed};
pub use history::{History, MINUTES, MOST_NAMES, Range, SECONDS};
pub use latencies::{BUCKETS, Latencies, bucket};
