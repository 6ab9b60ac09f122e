//! Selects the banners of a page: the candidates of each concept, their common list, and the
//! roulette.

mod draw;
mod page;
mod random;
mod roulette;
mod scan;
mod select;
#[cfg(test)]
mod tests;

pub(crate) use page::Page;
pub(crate) use random::RandomStream;
pub use select::Selection;
pub(crate) use select::{SelectionRequest, Selector};
