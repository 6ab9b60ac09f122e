//! What a store has done so far, for `/-/stats` and for tests.
//!
//! For every service `received = refused + served + orphaned + cancelled + failed` once nothing waits or runs.

use std::collections::BTreeMap;

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

/// What has become of the requests of one service.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ServiceStats {
    /// Well-formed requests.
    pub received: u64,
    /// Turned away with 503, because the queue was full or the store was closing.
    pub refused: u64,
    /// Answered, whatever the page says, to a client that was still there.
    pub served: u64,
    /// Answered to nobody: the client had left.
    pub orphaned: u64,
    /// Stopped in the database, or before it (503).
    pub cancelled: u64,
    /// The database was not there (503) or failed (500). Look at stderr.
    pub failed: u64,
    /// Microseconds of workers' time behind all of them.
    pub busy_us: u64,
    /// Of these: for clients that left before they were answered, whether anybody stopped their requests or not.
    pub busy_us_departed: u64,
    /// Of those: after they had left.
    pub busy_us_in_vain: u64,
}

impl Stats {
    /// The numbers of one service.
    pub fn service(&self, service: Service) -> ServiceStats {
        self.services.get(&service).copied().unwrap_or_default()
    }
}
