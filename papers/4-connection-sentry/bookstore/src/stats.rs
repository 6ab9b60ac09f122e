//! The statistics of a store, for `/-/stats` and for tests.

use std::collections::BTreeMap;

use bywash_database::ServiceStats;
use serde::Serialize;

use crate::Service;

/// The statistics of the whole store since its start. The counters are read one by one while work
/// continues, so that sums are exact only when the store is idle.
#[derive(Clone, Debug, Serialize)]
pub struct Stats {
    /// The statistics of each service. All seven services are always present.
    pub services: BTreeMap<Service, ServiceStats>,
    /// The total time that workers spent on requests, in microseconds.
    pub busy_us: u64,
    /// The part of `busy_us` that was spent on requests whose clients left before they had their
    /// answer.
    pub busy_us_departed: u64,
    /// The part of `busy_us_departed` that was spent after the client had left.
    pub busy_us_in_vain: u64,
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
    /// The total number of conversations begun with the stop daemon; `null` if the store uses none.
    /// More than one means that the daemon was absent or slow in between.
    pub stopd_conversations: Option<u64>,
    /// The state of the store's database.
    pub database: DatabaseStats,
}

/// The state of the store's database.
#[derive(Clone, Debug, Serialize)]
pub struct DatabaseStats {
    /// The kind of the database: `sqlite`, `postgres` or `mariadb`.
    pub kind: &'static str,
    /// Whether the last attempt of a worker to reach the database succeeded.
    pub reachable: bool,
    /// The total number of requests that found the database unavailable.
    pub lost: u64,
    /// The number of pages of text per book. The cost of a search is proportional to this number.
    pub pages: u32,
}

impl Stats {
    /// Returns the statistics of one service; all zero if the service is missing.
    pub fn service(&self, service: Service) -> ServiceStats {
        self.services.get(&service).copied().unwrap_or_default()
    }
}
