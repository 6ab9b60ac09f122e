//! The words by which the demos differ: the names of the site, of its clients and of their load.

/// The words for the site of a demo and for its clients.
#[derive(Clone, Copy, Debug)]
pub(super) struct Words {
    /// The site.
    pub(super) site: &'static str,
    /// The clients whose successes are counted.
    pub(super) clients: &'static str,
    /// The successes that are counted.
    pub(super) unit: &'static str,
    /// The phase with overload.
    pub(super) phase: &'static str,
    /// The beginning of that phase.
    pub(super) arrival: &'static str,
}

/// The words of the demo with a flash crowd.
pub(super) const SHOP: Words = Words {
    site: "shop",
    clients: "visitors",
    unit: "orders",
    phase: "flash crowd",
    arrival: "the crowd arrives",
};

/// The words of the demo with scrapers.
pub(super) const WIKI: Words = Words {
    site: "wiki",
    clients: "readers",
    unit: "pages",
    phase: "scraping",
    arrival: "the scrapers arrive",
};
