//! What is already on a page, and what may not come beside it.

use std::sync::Arc;

use crate::snapshot::Banner;

/// The banners chosen for one page so far.
#[derive(Debug, Default)]
pub(crate) struct Page {
    pub(crate) banners: Vec<Arc<Banner>>,
}

impl Page {
    /// Whether `banner` may come on it: it is not there yet, and nothing is that contradicts it (the seed's "repeated or
    /// paradoxal banners").
    pub(crate) fn takes(&self, banner: &Banner) -> bool {
        let rivals = |own: &Banner| own.category.is_some() && own.category == banner.category;
        !self.banners.iter().any(|own| own.id == banner.id || rivals(own))
    }

    pub(crate) fn add(&mut self, banner: &Arc<Banner>) {
        self.banners.push(Arc::clone(banner));
    }
}
