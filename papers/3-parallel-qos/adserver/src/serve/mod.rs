//! Which banners a page gets: candidates by concept, one list of them, and the roulette.

mod chance;
mod draw;
mod page;
mod roulette;
mod scan;
mod select;
#[cfg(test)]
mod tests;

pub(crate) use chance::Chance;
pub(crate) use page::Page;
pub use select::Selection;
pub(crate) use select::{Selector, Wanted};
