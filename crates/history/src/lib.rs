//! The history of outcomes: the last 15 minutes second by second, the last day minute by minute.
//!
//! The gateway counts events and never resets the counts (`counts` has their types). Once a second
//! the counts are read and passed to [`History::read`], which keeps the differences since the
//! previous reading. A row of a minute is the difference between the readings at its ends, not a
//! sum of rounded seconds. Nothing in this crate reads a clock.
//!
//! # Bounds
//!
//! At most [`SECONDS`] and [`MINUTES`] rows are kept. A row has only the classes in which something
//! happened, at 92 bytes each. A site with 64 classes that are all busy all day takes 14 MB, a site
//! with eight takes 1.7 MB.
//!
//! For windows, at most 141 readings are kept, with 960 bytes for each class, busy or not. A site
//! with 64 classes takes 9 MB, a site with eight takes 1.1 MB.
//!
//! Class names are kept once, and at most [`MOST_NAMES`] of them. Rows leave out all further
//! classes.
//!
//! # Time
//!
//! Rows are numbered consecutively and carry the wall-clock time. If the clock is set, the times
//! jump but the numbers do not. So a client that has seen row 7 asks for the rows after row 7. A
//! late reading makes one row for the whole time since the previous reading, and the row has that
//! length.
//!
//! # Windows
//!
//! [`History::window`] returns the sums and the response times of the last 10 seconds, minute, 15
//! minutes or day. They are differences between counts. So a percentile is that of the requests in
//! the window, accurate to a bucket: one part in 16. Rows survive a restart, but readings do not:
//! after a restart, a window is as long as the process has run.
//!
//! # Modules
//!
//! - `latencies` counts response times in buckets.
//! - `counts` is the input, `row` the difference between two readings, `columns` the form in which
//!   rows are returned and stored.
//! - `window` is the difference between readings that are further apart.
//! - `summary` is the form in which a gateway sends the last 15 minutes to another one.
//! - `history` keeps the rows, and the readings for windows.
#![forbid(unsafe_code)]

mod columns;
mod counts;
mod history;
mod latencies;
mod quiet;
mod row;
mod summary;
mod window;

pub use columns::{ClassColumns, Columns, OutcomeCounts, Outcomes, Shadow};
pub use counts::{ClassCounts, Gauges, Reading, Shadowed};
pub use history::{History, MINUTES, MOST_NAMES, Range, SECONDS};
pub use latencies::{BUCKETS, Latencies, bucket};
pub use summary::HistorySummary;
pub use window::{ClassSums, Sums, Window, WindowSums};
