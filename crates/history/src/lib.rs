//! What became of requests: the last quarter of an hour second by second, the last day minute by minute.
//!
//! Somebody counts what happens and never forgets (`counts` has the shape); once a second that is read and handed to
//! [`History::read`], which keeps what has changed since. A minute is the difference between its ends, and no sum of rounded
//! seconds. Nothing here reads a clock.
//!
//! # Bounds
//!
//! [`SECONDS`] and [`MINUTES`] rows, and in each only classes of which something happened: 92 bytes of each. A site with 64
//! classes that are all busy all day takes 14 MB, one with eight 1.7 MB. Names of classes are kept once, and
//! [`MOST_NAMES`] of them: of a class that comes after these nothing is kept.
//!
//! # Time
//!
//! Rows are numbered, one after the other, and have the time that the clock showed. A clock that is set makes a jump in the times
//! and none in the numbers; so whoever has seen row 7 asks for what comes after row 7. A reading that comes late makes one
//! row for all the time since the last, and says how long that was.
//!
//! # Rooms
//!
//! `latencies` counts response times in buckets; `counts` is what is read; `row` is what happened between two readings;
//! `columns` is how they are told, and kept; `history` has the rows.
#![forbid(unsafe_code)]

mod columns;
mod counts;
mod history;
mod latencies;
mod row;

pub use columns::{ClassColumns, Columns, Outcomes, Shadow};
pub use counts::{ClassCounts, Gauges, Reading, Shadowed};
pub use history::{History, MINUTES, MOST_NAMES, Range, SECONDS};
pub use latencies::{BUCKETS, Latencies, bucket};
