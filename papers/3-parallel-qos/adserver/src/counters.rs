//! The running totals behind [`Stats`](crate::Stats).
//!
//! All threads share the counters, so each is an atomic. They do not order other memory accesses,
//! so every access is `Relaxed`. The counters are read one by one, so that a reading is not a
//! consistent state of all of them.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use crate::stats::{RequestStats, SelectionStats};
use crate::{Level, Selection};

/// The kind under which a request is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestKind {
    Ad(Level),
    Click,
    Admin,
}

/// The outcome of a request that was received.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Outcome {
    Refused,
    /// The request was answered, this long after it was received.
    Answered(Duration),
    Failed,
    Orphaned,
}

/// All counters of a server.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    levels: [RequestCounters; Level::ALL.len()],
    clicks: RequestCounters,
    admin: RequestCounters,
    pages: AtomicU64,
    placed: AtomicU64,
    empty: AtomicU64,
    rescans: AtomicU64,
    counted: AtomicU64,
    repeated: AtomicU64,
    running: AtomicUsize,
    departed: AtomicU64,
    levels_refused: AtomicU64,
}

#[derive(Debug, Default)]
struct RequestCounters {
    received: AtomicU64,
    refused: AtomicU64,
    answered: AtomicU64,
    failed: AtomicU64,
    orphaned: AtomicU64,
    latency_us: AtomicU64,
}

impl Counters {
    pub(crate) fn count_received(&self, kind: RequestKind) {
        self.of(kind).received.fetch_add(1, Relaxed);
    }

    pub(crate) fn count_outcome(&self, kind: RequestKind, outcome: Outcome) {
        let counters = self.of(kind);
        let count = match outcome {
            Outcome::Refused => &counters.refused,
            Outcome::Answered(latency) => {
                counters.latency_us.fetch_add(latency.as_micros() as u64, Relaxed);
                &counters.answered
            }
            Outcome::Failed => &counters.failed,
            Outcome::Orphaned => &counters.orphaned,
        };
        count.fetch_add(1, Relaxed);
    }

    /// Counts a page that wanted `wanted` banners and got `placed` of them. `rescans` is the number
    /// of its selections that ended with a scan because too many draws from the trees were
    /// rejected.
    pub(crate) fn count_selection(&self, wanted: usize, placed: usize, rescans: u64) {
        self.pages.fetch_add(1, Relaxed);
        self.placed.fetch_add(placed as u64, Relaxed);
        self.empty.fetch_add(wanted.saturating_sub(placed) as u64, Relaxed);
        self.rescans.fetch_add(rescans, Relaxed);
    }

    pub(crate) fn count_click(&self, is_first: bool) {
        let count = if is_first { &self.counted } else { &self.repeated };
        count.fetch_add(1, Relaxed);
    }

    /// Counts a request's signed level as refused, unless `is_believed` says that the server has
    /// accepted the level.
    pub(crate) fn count_level(&self, is_believed: bool) {
        self.levels_refused.fetch_add(u64::from(!is_believed), Relaxed);
    }

    /// Returns the total number of requests with a level that was not accepted or is unknown.
    pub(crate) fn levels_refused(&self) -> u64 {
        self.levels_refused.load(Relaxed)
    }

    /// Returns the counter of departed clients, which the code that detects departures increments.
    pub(crate) const fn departures(&self) -> &AtomicU64 {
        &self.departed
    }

    /// Counts a request as running until the returned guard is dropped.
    pub(crate) fn run(&self) -> Running<'_> {
        self.running.fetch_add(1, Relaxed);
        Running(&self.running)
    }

    pub(crate) fn requests(&self, kind: RequestKind) -> RequestStats {
        let counters = self.of(kind);
        let answered = counters.answered.load(Relaxed);
        let latency_us = counters.latency_us.load(Relaxed);
        RequestStats {
            received: counters.received.load(Relaxed),
            refused: counters.refused.load(Relaxed),
            answered,
            failed: counters.failed.load(Relaxed),
            orphaned: counters.orphaned.load(Relaxed),
            latency_us,
            mean_latency_us: latency_us.checked_div(answered).unwrap_or(0),
        }
    }

    pub(crate) fn selections(&self, by: Selection) -> SelectionStats {
        SelectionStats {
            by,
            pages: self.pages.load(Relaxed),
            placed: self.placed.load(Relaxed),
            empty: self.empty.load(Relaxed),
            rescans: self.rescans.load(Relaxed),
        }
    }

    /// Returns two totals: the number of counted clicks, and the number of repeated clicks, which
    /// were not counted.
    pub(crate) fn clicks(&self) -> (u64, u64) {
        (self.counted.load(Relaxed), self.repeated.load(Relaxed))
    }

    /// Returns the number of requests that are being served now.
    pub(crate) fn running_now(&self) -> usize {
        self.running.load(Relaxed)
    }

    /// Returns the total number of clients that left before they got their answer.
    pub(crate) fn departed_so_far(&self) -> u64 {
        self.departed.load(Relaxed)
    }

    fn of(&self, kind: RequestKind) -> &RequestCounters {
        match kind {
            RequestKind::Ad(level) => &self.levels[level.index()],
            RequestKind::Click => &self.clicks,
            RequestKind::Admin => &self.admin,
        }
    }
}

/// A guard that counts a request as running until it is dropped.
#[derive(Debug)]
pub(crate) struct Running<'a>(&'a AtomicUsize);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}
