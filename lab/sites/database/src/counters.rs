//! Running totals of the outcomes of requests, by kind of request.
//!
//! For every kind `received = refused + served + orphaned + cancelled + failed` once no request
//! waits or runs.
//!
//! The HTTP thread and all workers share the totals, so every total is an atomic. No other memory
//! access depends on them, so every access is `Relaxed`. A reading loads one total after the other,
//! so its totals may belong to slightly different moments.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use serde::Serialize;

/// The totals of one kind of request since the application started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ServiceStats {
    /// The number of well-formed requests.
    pub received: u64,
    /// The number of requests rejected with 503, because the queue was full or the application was
    /// closing.
    pub refused: u64,
    /// The number of requests answered, whatever the page says, to a client that had not left.
    pub served: u64,
    /// The number of requests completed after the client had left.
    pub orphaned: u64,
    /// The number of requests that were stopped in the database, or before they reached it, and
    /// answered with 503.
    pub cancelled: u64,
    /// The number of requests that failed because the database was not available (503) or reported
    /// an error (500). Standard error has the reasons.
    pub failed: u64,
    /// The total time that workers spent on these requests, in microseconds.
    pub busy_us: u64,
    /// The part of `busy_us` for requests whose client left before the answer, whether or not the
    /// request was cancelled.
    pub busy_us_departed: u64,
    /// The part of `busy_us_departed` that workers spent after the client had left.
    pub busy_us_in_vain: u64,
}

/// How a request that was received ended.
#[derive(Clone, Copy, Debug)]
pub enum Outcome {
    /// The request was never queued, or was removed from the queue when the queue closed.
    Refused,
    /// The request was answered before the client left.
    Served,
    /// The request was completed after the client had left.
    Orphaned,
    /// The request was stopped in the database, or before it reached the database.
    Cancelled,
    /// The database was not available, or reported an error.
    Failed,
}

/// The time that a worker spent on a request.
#[derive(Clone, Copy, Debug, Default)]
pub struct Busy {
    /// The whole time.
    pub all: Duration,
    /// The part of `all` after the client left; `None` if the client did not leave.
    pub in_vain: Option<Duration>,
}

/// All totals of an application, since it started.
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

    /// Counts a well-formed request of `kind`.
    pub fn count_received(&self, kind: usize) {
        self.of(kind).received.fetch_add(1, Relaxed);
    }

    /// Counts the outcome of a request of `kind`, and the time that a worker spent on it.
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

    /// Returns the total number of departed clients. The component that detects departures
    /// increments it.
    pub const fn departures(&self) -> &AtomicU64 {
        &self.departed
    }

    /// Records whether the database was available when it was last used.
    pub fn record_database(&self, is_available: bool) {
        self.is_unavailable.store(!is_available, Relaxed);
        if !is_available {
            self.lost.fetch_add(1, Relaxed);
        }
    }

    /// Counts a worker as running until the returned guard is dropped.
    pub fn run(&self) -> Running<'_> {
        self.running.fetch_add(1, Relaxed);
        Running(&self.running)
    }

    /// Returns a reading of the totals of `kind`.
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

    /// Returns the number of workers that are running now.
    pub fn running_now(&self) -> usize {
        self.running.load(Relaxed)
    }

    /// Returns the number of clients that have departed since the application started.
    pub fn departed_so_far(&self) -> u64 {
        self.departed.load(Relaxed)
    }

    /// Returns whether the database was available at the last attempt, and how many attempts found
    /// it unavailable.
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
