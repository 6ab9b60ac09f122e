//! A scenario in real time against a URL.
//!
//! The load is open: sessions start when the scenario says so, whether the site keeps up or not,
//! and every time is measured from the moment at which a request was *meant* to be made. A closed
//! load (so many connections, each waiting for its answer) slows down together with the site and
//! then reports that all is well: Gil Tene's «coordinated omission». An open one can fall behind
//! its own clock instead, so this one measures by how much and calls such a run invalid.
//!
//! Clients are real. One whose patience ends closes her socket at once, so that the site can see
//! her leave; she retries and gives up as the scenario says; she keeps her cookies and, while it
//! stays open, her connection. Everybody lives on one thread: a visitor waits nearly always, and
//! without threads there are no locks whose waiting would look like the site's.
//!
//! Rooms: [`Options`] say what to play where; `target` is the site's address; `request` turns an
//! attempt into HTTP and `jar` keeps cookies; `connection` asks one question; `walk` is one
//! visitor on her way; `slots` bounds how many there are; `field` is what they share; `ledger`
//! keeps the books, `verdict` says whether they are worth anything; `run` starts and ends it all.
//!
//! Two request headers are of use to a target that emulates work: [`DEMAND_HEADER`] and
//! [`ORDER_TAG_HEADER`]. Others ignore them.
#![forbid(unsafe_code)]

mod blanks;
mod clock;
mod connection;
mod error;
mod field;
mod form;
mod jar;
mod ledger;
mod options;
mod request;
mod run;
mod slots;
mod target;
mod verdict;
mod walk;

pub use error::LoadError;
pub use ledger::Progress;
pub use options::{Busy, Options};
pub use request::{DEMAND_HEADER, ORDER_TAG_HEADER};
pub use run::{Run, run};
