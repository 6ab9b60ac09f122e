//! The banners of a page, and the check whether another may be added.

use std::sync::Arc;

use crate::snapshot::Banner;

/// The banners chosen for one page so far.
#[derive(Debug, Default)]
pub(crate) struct Page {
    pub(crate) banners: Vec<Arc<Banner>>,
}

impl Page {
    /// Returns whether `banner` may be added. It may if it is not on the page yet and no banner on
    /// the page contradicts it (the paper's "repeated or paradoxal banners").
    pub(crate) fn takes(&self, banner: &Banner) -> bool {
        let rivals = |own: &Banner| own.category.is_some() && own.category == banner.category;
        !self.banners.iter().any(|own| own.id == banner.id || rivals(own))
    }

    pub(crate) fn add(&mut self, banner: &Arc<Banner>) {
        self.banners.push(Arc::clone(banner));
    }
}
