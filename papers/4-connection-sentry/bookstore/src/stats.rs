//! The statistics of a store, for `/-/stats` and for tests.

use std::collections::BTreeMap;

use bywash_database::ServiceStats;
use serde::Serialize;

use crate::Service;

/// A reading of the whole store. The counters are read one by one while work continues, so that
/// sums are exact only when the store is idle.
#[derive(Clone, Debug, Serialize)]
pub struct Stats {
    /// Statistics of each service; always all seven.
    pub services: BTreeMap<Service, ServiceStats>,
    /// Workers' time for all requests, in microseconds.
    pub busy_us: u64,
    /// The part of `busy_us` for clients that left before they were answered.
    pub busy_us_departed: u64,
    /// The part of `busy_us_departed` after the client had left.
    pub busy_us_in_vain: u64,
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
    /// Conversations begun with the stop daemon; `null` without one. More than one means that the
    /// daemon was away or slow.
    pub stopd_conversations: Option<u64>,
    /// The store's database.
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
    /// Pages of a book. The cost of a search is proportional to their number.
    pub pages: u32,
}

impl Stats {
    /// Returns the numbers of one service.
    pub fn service(&self, service: Service) -> ServiceStats {
        self.services.get(&service).copied().unwrap_or_default()
    }
}
