//! Running totals of the outcomes of requests, by kind of request.
//!
//! For every kind `received = refused + served + orphaned + cancelled + failed` once nothing waits
//! or runs.
//!
//! The HTTP thread and all workers share the totals, so every total is an atomic. The atomics order
//! nothing: they use `Relaxed` throughout, and in a reading each number is true at some moment.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use serde::Serialize;

/// The outcomes of the requests of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ServiceStats {
    /// Well-formed requests.
    pub received: u64,
    /// Rejected with 503, because the queue was full or the application was closing.
    pub refused: u64,
    /// Answered, whatever the page says, to a client that had not left.
    pub served: u64,
    /// Completed after the client had left.
    pub orphaned: u64,
    /// Stopped in the database, or before they reached it; answered with 503.
    pub cancelled: u64,
    /// Failed because the database was not available (503) or reported an error (500). See stderr.
    pub failed: u64,
    /// Workers' time for all of these requests, in microseconds.
    pub busy_us: u64,
    /// The part of `busy_us` for clients that left before they were answered, whether or not their
    /// requests were cancelled.
    pub busy_us_departed: u64,
    /// The part of `busy_us_departed` after the client had left.
    pub busy_us_in_vain: u64,
}

/// How a request that was received ended.
#[derive(Clone, Copy, Debug)]
pub enum Outcome {
    /// Never queued, or removed from the queue when it closed.
    Refused,
    /// Answered before the client left.
    Served,
    /// Completed after the client had left.
    Orphaned,
    /// Stopped in the database.
    Cancelled,
    /// The database was not available, or failed.
    Failed,
}

/// The time a worker spent on a request.
#[derive(Clone, Copy, Debug, Default)]
pub struct Busy {
    /// The whole time.
    pub all: Duration,
    /// The part after its client left, if it has left.
    pub in_vain: Option<Duration>,
}

/// All totals of an application.
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
    /// Creates the totals for `kinds` kinds of requests, which are numbered from 0.
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

    /// Counts a well-formed request.
    pub fn count_received(&self, kind: usize) {
        self.of(kind).received.fetch_add(1, Relaxed);
    }

    /// Counts a request with its outcome and the time that a worker spent on it.
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

    /// Returns the counter of departed clients, for the component that detects them.
    pub const fn departures(&self) -> &AtomicU64 {
        &self.departed
    }

    /// Records whether the database was available at an attempt to use it.
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

    /// Returns a reading of one kind.
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

    /// Returns the number of workers that run now.
    pub fn running_now(&self) -> usize {
        self.running.load(Relaxed)
    }

    /// Returns the number of clients that have departed so far.
    pub fn departed_so_far(&self) -> u64 {
        self.departed.load(Relaxed)
    }

    /// Returns whether the database was available at the last attempt, and how often it was not.
    pub fn database(&self) -> (bool, u64) {
        (!self.is_unavailable.load(Relaxed), self.lost.load(Relaxed))
    }

    fn of(&self, kind: usize) -> &ServiceCounters {
        &self.kinds[kind]
    }
}

/// A guard that counts one worker as running.
#[derive(Debug)]
pub struct Running<'a>(&'a AtomicUsize);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}
