//! What an auction has done so far, for `/-/stats` and for tests.

use std::collections::BTreeMap;

use bywash_database::ServiceStats;
use serde::Serialize;

use crate::Page;

/// A reading of the whole auction. The counters are read one by one while work goes on: sums are exact only when it is
/// idle.
#[derive(Clone, Debug, Serialize)]
pub struct Stats {
    /// Per page; always all of them.
    pub pages: BTreeMap<Page, ServiceStats>,
    /// Microseconds of workers' time.
    pub busy_us: u64,
    /// Requests waiting for a worker now.
    pub queue_length: usize,
    /// Workers that run a request now.
    pub running: usize,
    /// Clients that left between sending their request and getting the answer.
    pub departed: u64,
    /// How many requests can run at a time.
    pub workers: usize,
    /// How many requests can wait.
    pub backlog: usize,
    /// The database behind.
    pub database: DatabaseStats,
}

/// What is known of the database.
#[derive(Clone, Debug, Serialize)]
pub struct DatabaseStats {
    /// `sqlite`, `postgres` or `mariadb`.
    pub kind: &'static str,
    /// Whether it was there when a worker last asked it.
    pub reachable: bool,
    /// Requests that found it gone.
    pub lost: u64,
}

impl Stats {
    /// The numbers of one page.
    pub fn page(&self, page: Page) -> ServiceStats {
        self.pages.get(&page).copied().unwrap_or_default()
    }
}
