//! What became of requests: running totals, by kind of request.
//!
//! For every kind `received = refused + served + orphaned + cancelled + failed` once nothing waits or runs.
//!
//! Shared by the HTTP thread and all workers, so every one is an atomic. They order nothing: `Relaxed` throughout, and
//! a reading is a set of numbers each true at some moment.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use serde::Serialize;

/// What has become of the requests of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ServiceStats {
    /// Well-formed requests.
    pub received: u64,
    /// Turned away with 503, because the queue was full or the application was closing.
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

/// How a request that was received ended.
#[derive(Clone, Copy, Debug)]
pub enum Outcome {
    /// Never queued, or thrown out of the queue when the store closed.
    Refused,
    /// Answered, and the client was there to take it.
    Served,
    /// Answered, and nobody was there.
    Orphaned,
    /// Stopped in the database.
    Cancelled,
    /// The database was not there, or failed.
    Failed,
}

/// How long a worker had to do with a request.
#[derive(Clone, Copy, Debug, Default)]
pub struct Busy {
    /// In all.
    pub all: Duration,
    /// After its client had left, if it has.
    pub in_vain: Option<Duration>,
}

/// Everything that is counted.
#[derive(Debug)]
pub struct Counters {
    kinds: Vec<ServiceCounters>,
    running: AtomicUsize,
    departed: AtomicU64,
    lost: AtomicU64,
    is_unavailable: AtomicBool,
}

#[derive(Debug, Default)]
struct ServiceCounters {
    received: AtomicU64,
    refused: AtomicU64,
    served: AtomicU64,
    orphaned: AtomicU64,
    cancelled: AtomicU64,
    failed: AtomicU64,
    busy_us: AtomicU64,
    busy_us_departed: AtomicU64,
    busy_us_in_vain: AtomicU64,
}

impl Counters {
    /// For so many kinds of requests, which have their numbers from 0.
    pub fn new(kinds: usize) -> Self {
        let kinds = (0..kinds).map(|_| ServiceCounters::default()).collect();
        Self {
            kinds,
            running: AtomicUsize::new(0),
            departed: AtomicU64::new(0),
            lost: AtomicU64::new(0),
            is_unavailable: AtomicBool::new(false),
        }
    }

    /// A well-formed request has come.
    pub fn count_received(&self, kind: usize) {
        self.of(kind).received.fetch_add(1, Relaxed);
    }

    /// A worker was busy for so long with a request that ended so.
    pub fn count_outcome(&self, kind: usize, outcome: Outcome, busy: Busy) {
        let counters = self.of(kind);
        let add = |counter: &AtomicU64, time: Duration| {
            counter.fetch_add(time.as_micros() as u64, Relaxed);
        };
        add(&counters.busy_us, busy.all);
        if let Some(in_vain) = busy.in_vain {
            add(&counters.busy_us_departed, busy.all);
            add(&counters.busy_us_in_vain, in_vain);
        }
        let count = match outcome {
            Outcome::Refused => &counters.refused,
            Outcome::Served => &counters.served,
            Outcome::Orphaned => &counters.orphaned,
            Outcome::Cancelled => &counters.cancelled,
            Outcome::Failed => &counters.failed,
        };
        count.fetch_add(1, Relaxed);
    }

    /// For whoever sees a client depart.
    pub const fn departures(&self) -> &AtomicU64 {
        &self.departed
    }

    /// The database was there, or it was not.
    pub fn record_database(&self, is_available: bool) {
        self.is_unavailable.store(!is_available, Relaxed);
        if !is_available {
            self.lost.fetch_add(1, Relaxed);
        }
    }

    /// Counts a worker as running until the guard is dropped.
    pub fn run(&self) -> Running<'_> {
        self.running.fetch_add(1, Relaxed);
        Running(&self.running)
    }

    /// A reading of one kind.
    pub fn kind(&self, kind: usize) -> ServiceStats {
        let counters = self.of(kind);
        ServiceStats {
            received: counters.received.load(Relaxed),
            refused: counters.refused.load(Relaxed),
            served: counters.served.load(Relaxed),
            orphaned: counters.orphaned.load(Relaxed),
            cancelled: counters.cancelled.load(Relaxed),
            failed: counters.failed.load(Relaxed),
            busy_us: counters.busy_us.load(Relaxed),
            busy_us_departed: counters.busy_us_departed.load(Relaxed),
            busy_us_in_vain: counters.busy_us_in_vain.load(Relaxed),
        }
    }

    /// Workers running now.
    pub fn running_now(&self) -> usize {
        self.running.load(Relaxed)
    }

    /// Clients departed so far.
    pub fn departed_so_far(&self) -> u64 {
        self.departed.load(Relaxed)
    }

    /// Whether the database was there when it was last asked, and how often it was not.
    pub fn database(&self) -> (bool, u64) {
        (!self.is_unavailable.load(Relaxed), self.lost.load(Relaxed))
    }

    fn of(&self, kind: usize) -> &ServiceCounters {
        &self.kinds[kind]
    }
}

/// One running worker.
#[derive(Debug)]
pub struct Running<'a>(&'a AtomicUsize);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}
