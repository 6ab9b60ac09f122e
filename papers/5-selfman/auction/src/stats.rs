//! The statistics of an auction, for `/-/stats` and for tests.

use std::collections::BTreeMap;

use bywash_database::ServiceStats;
use serde::Serialize;

use crate::Page;

/// A reading of the whole auction. The counters are read one by one while work continues, so that
/// sums are exact only when the auction is idle.
#[derive(Clone, Debug, Serialize)]
pub struct Stats {
    /// Statistics of each page; always all of them.
    pub pages: BTreeMap<Page, ServiceStats>,
    /// Workers' time for all requests, in microseconds.
    pub busy_us: u64,
    /// Requests waiting for a worker now.
    pub queue_length: usize,
    /// Workers that run a request now.
    pub running: usize,
    /// Clients that left between sending their request and getting the answer.
    pub departed: u64,
    /// The number of requests that can run at a time.
    pub workers: usize,
    /// The number of requests that can wait.
    pub backlog: usize,
    /// The auction's database.
    pub database: DatabaseStats,
}

/// The state of the database.
#[derive(Clone, Debug, Serialize)]
pub struct DatabaseStats {
    /// `sqlite`, `postgres` or `mariadb`.
    pub kind: &'static str,
    /// Whether the database was available at a worker's last attempt.
    pub reachable: bool,
    /// Requests that found the database unavailable.
    pub lost: u64,
}

impl Stats {
    /// Returns the numbers of one page.
    pub fn page(&self, page: Page) -> ServiceStats {
        self.pages.get(&page).copied().unwrap_or_default()
    }
}
