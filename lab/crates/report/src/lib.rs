//! Shows run results to people: plain-text tables for a terminal, and one HTML file with SVG
//! figures.
//!
//! The HTML file contains no script and no external font, and makes no request. Its content
//! security policy forbids all three. The file can therefore be mailed, archived and printed, and
//! does not depend on anything else. Names of policies, classes and scenarios may come from a
//! hostile log. They are therefore escaped in HTML and SVG, and printed without control characters
//! on a terminal.
//!
//! The SVG writer is part of this crate, because three kinds of figure do not justify a plotting
//! library. No library known to us supports light and dark mode from CSS, hatching, and text for a
//! screen reader.
//!
//! # Modules
//!
//! - [`table`] formats the two tables of every run.
//! - [`figure`] draws the figures.
//! - [`page`] puts tables and figures on a page.
//! - [`standard`] composes the usual report of a run.
#![forbid(unsafe_code)]

pub mod figure;
mod number;
pub mod page;
pub mod standard;
pub mod table;
mod text;

pub use page::{Block, Report, Section, Verdict, write, write_figures};
pub use standard::result_report;

#[cfg(test)]
mod sample;
