//! The statistics of an auction site, for `/-/stats` and for tests.

use std::collections::BTreeMap;

use bywash_database::ServiceStats;
use serde::Serialize;

use crate::Page;

/// The statistics of the whole site since its start. The counters are read one by one while work
/// continues, so that sums are exact only when the site is idle.
#[derive(Clone, Debug, Serialize)]
pub struct Stats {
    /// The statistics of each page. All pages are always present.
    pub pages: BTreeMap<Page, ServiceStats>,
    /// The total time that workers spent on requests, in microseconds.
    pub busy_us: u64,
    /// The number of requests that wait for a worker now.
    pub queue_length: usize,
    /// The number of workers that run a request now.
    pub running: usize,
    /// The total number of clients that left after they had sent a request and before they got the
    /// answer.
    pub departed: u64,
    /// The number of workers, which is the maximum number of running requests.
    pub workers: usize,
    /// The maximum number of waiting requests.
    pub backlog: usize,
    /// The state of the site's database.
    pub database: DatabaseStats,
}

/// The state of the site's database.
#[derive(Clone, Debug, Serialize)]
pub struct DatabaseStats {
    /// The kind of the database: `sqlite`, `postgres` or `mariadb`.
    pub kind: &'static str,
    /// Whether the last attempt of a worker to reach the database succeeded.
    pub reachable: bool,
    /// The total number of requests that found the database unavailable.
    pub lost: u64,
}

impl Stats {
    /// Returns the statistics of one page; all zero if the page is missing.
    pub fn page(&self, page: Page) -> ServiceStats {
        self.pages.get(&page).copied().unwrap_or_default()
    }
}
