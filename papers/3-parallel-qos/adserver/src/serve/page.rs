//! The banners of a page, and the check whether another banner may be added.

use std::sync::Arc;

use crate::snapshot::Banner;

/// The banners chosen for one page so far.
#[derive(Debug, Default)]
pub(crate) struct Page {
    pub(crate) banners: Vec<Arc<Banner>>,
}

impl Page {
    /// Returns whether `banner` may be added to the page. A banner may not be added twice, nor
    /// together with a banner of the same category (the paper's "repeated or paradoxal banners").
    pub(crate) fn accepts(&self, banner: &Banner) -> bool {
        let rivals = |own: &Banner| own.category.is_some() && own.category == banner.category;
        !self.banners.iter().any(|own| own.id == banner.id || rivals(own))
    }

    pub(crate) fn add(&mut self, banner: &Arc<Banner>) {
        self.banners.push(Arc::clone(banner));
    }
}
