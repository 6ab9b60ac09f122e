//! Text for terminals: tables, messages on standard error, and foreign text made safe to show.
#![forbid(unsafe_code)]

pub mod stderr;
mod table;
pub mod text;

pub use table::{Align, Table};
