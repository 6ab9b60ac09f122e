//! What a store has done so far, for `/-/stats` and for tests.

use std::collections::BTreeMap;

use bywash_database::ServiceStats;
use serde::Serialize;

use crate::Service;

/// A reading of the whole store. The counters are read one by one while work goes on: sums are exact only when the
/// store is idle.
#[derive(Clone, Debug, Serialize)]
pub struct Stats {
    /// Per service; always all seven.
    pub services: BTreeMap<Service, ServiceStats>,
    /// Microseconds of workers' time.
    pub busy_us: u64,
    /// Of these: for clients that left before they were answered.
    pub busy_us_departed: u64,
    /// Of those: after they had left.
    pub busy_us_in_vain: u64,
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
    /// Conversations begun with the stop daemon; `null` without one. One is usual, more: it was away or slow.
    pub sentry_conversations: Option<u64>,
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
    /// Pages a book has: the cost of a search is proportional to them.
    pub pages: u32,
}

impl Stats {
    /// The numbers of one service.
    pub fn service(&self, service: Service) -> ServiceStats {
        self.services.get(&service).copied().unwrap_or_default()
    }
}
