//! Run results for people: plain-text tables for a terminal, and one HTML file with SVG figures.
//!
//! The file asks nothing of anybody: no script, no font, no request, and a content security
//! policy that says so. It can be mailed, archived, printed, and opened ten years from now.
//! Names of policies, classes and scenarios may come from a hostile log, so they are text
//! everywhere: escaped in HTML and SVG, and without control characters in a terminal.
//!
//! The SVG writer is our own because three kinds of figure do not pay for a plotting library,
//! and none we know gives light and dark from CSS, hatching, and text that a screen reader reads.
//!
//! Rooms: [`table`] aligns columns; [`figure`] draws; [`page`] puts both on a page; [`standard`]
//! is the usual report of a run.
#![forbid(unsafe_code)]

pub mod figure;
mod number;
pub mod page;
pub mod standard;
pub mod table;
mod text;

pub use page::{Block, Report, Section, Verdict, write};
pub use standard::result_report;
pub use table::{Align, Table};

#[cfg(test)]
mod sample;
