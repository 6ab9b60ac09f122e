//! The running totals behind [`Stats`](crate::Stats).
//!
//! The HTTP thread and all workers share the totals, so every total is an atomic. No other memory
//! access depends on them, so every access is `Relaxed`. A reading loads one total after the other,
//! so its totals may belong to slightly different moments.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use crate::{Stage, StageStats};

/// How a request that was received ended.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Outcome {
    /// The request was never queued, or was removed from the queue when the shop closed.
    Refused,
    /// The request was taken from the queue after its client had left, and was dropped.
    Skipped,
    /// The request was answered before the client left. The duration is the time that its worker
    /// was busy.
    Answered(Duration),
    /// The request was answered after the client had left, or was aborted. The duration is the time
    /// that its worker was busy.
    Wasted(Duration),
}

/// All totals of a shop since it was opened.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    stages: [StageCounters; Stage::ALL.len()],
    running: AtomicUsize,
    departed: AtomicU64,
    orders: AtomicU64,
}

#[derive(Debug, Default)]
struct StageCounters {
    received: AtomicU64,
    refused: AtomicU64,
    skipped: AtomicU64,
    answered: AtomicU64,
    failed: AtomicU64,
    wasted: AtomicU64,
    busy_us_useful: AtomicU64,
    busy_us_wasted: AtomicU64,
}

impl Counters {
    /// Creates the totals of a shop whose database already holds `orders` orders. Later orders are
    /// counted in memory, because statistics must be available while the database is the
    /// bottleneck.
    pub(crate) fn new(orders: u64) -> Self {
        Self { orders: AtomicU64::new(orders), ..Self::default() }
    }

    pub(crate) fn count_received(&self, stage: Stage) {
        self.of(stage).received.fetch_add(1, Relaxed);
    }

    pub(crate) fn count_outcome(&self, stage: Stage, outcome: Outcome) {
        let counters = self.of(stage);
        let (count, busy) = match outcome {
            Outcome::Refused => (&counters.refused, None),
            Outcome::Skipped => (&counters.skipped, None),
            Outcome::Answered(busy) => (&counters.answered, Some((&counters.busy_us_useful, busy))),
            Outcome::Wasted(busy) => (&counters.wasted, Some((&counters.busy_us_wasted, busy))),
        };
        if let Some((total, busy)) = busy {
            total.fetch_add(busy.as_micros() as u64, Relaxed);
        }
        count.fetch_add(1, Relaxed);
    }

    pub(crate) fn count_failed(&self, stage: Stage) {
        self.of(stage).failed.fetch_add(1, Relaxed);
    }

    /// Returns the total number of departed clients. The component that detects departures
    /// increments it.
    pub(crate) const fn departures(&self) -> &AtomicU64 {
        &self.departed
    }

    pub(crate) fn count_order(&self) {
        self.orders.fetch_add(1, Relaxed);
    }

    /// Counts a worker as running until the returned guard is dropped.
    pub(crate) fn run(&self) -> Running<'_> {
        self.running.fetch_add(1, Relaxed);
        Running(&self.running)
    }

    /// Returns a reading of the totals of `stage`.
    pub(crate) fn stage(&self, stage: Stage) -> StageStats {
        let counters = self.of(stage);
        StageStats {
            received: counters.received.load(Relaxed),
            refused: counters.refused.load(Relaxed),
            skipped: counters.skipped.load(Relaxed),
            answered: counters.answered.load(Relaxed),
            failed: counters.failed.load(Relaxed),
            wasted: counters.wasted.load(Relaxed),
            busy_us_useful: counters.busy_us_useful.load(Relaxed),
            busy_us_wasted: counters.busy_us_wasted.load(Relaxed),
        }
    }

    /// Returns the number of workers that are running now.
    pub(crate) fn running_now(&self) -> usize {
        self.running.load(Relaxed)
    }

    /// Returns the number of clients that have departed since the shop was opened.
    pub(crate) fn departed_so_far(&self) -> u64 {
        self.departed.load(Relaxed)
    }

    /// Returns the number of orders in the database, including those from before the shop was
    /// opened.
    pub(crate) fn orders_so_far(&self) -> u64 {
        self.orders.load(Relaxed)
    }

    fn of(&self, stage: Stage) -> &StageCounters {
        &self.stages[stage.index()]
    }
}

/// A guard that counts one worker as running.
#[derive(Debug)]
pub(crate) struct Running<'a>(&'a AtomicUsize);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}
