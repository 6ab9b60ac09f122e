//! The running totals behind [`Stats`](crate::Stats).
//!
//! Shared by all threads, so every one is an atomic. They order nothing: `Relaxed` throughout, and a reading is a set of
//! numbers each true at some moment.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use crate::stats::{RequestStats, SelectionStats};
use crate::{Level, Selection};

/// What a request is counted under.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Ad(Level),
    Click,
    Admin,
}

/// How a request that was received ended.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Outcome {
    Refused,
    /// It took so long.
    Answered(Duration),
    Failed,
    Orphaned,
}

/// Everything that is counted.
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
    pub(crate) fn count_received(&self, kind: Kind) {
        self.of(kind).received.fetch_add(1, Relaxed);
    }

    pub(crate) fn count_outcome(&self, kind: Kind, outcome: Outcome) {
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

    /// A page wanted so many banners and got `placed`, after so many scans that stood in for the trees.
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

    /// A request came with a level, which the gateway has signed or not.
    pub(crate) fn count_level(&self, is_believed: bool) {
        self.levels_refused.fetch_add(u64::from(!is_believed), Relaxed);
    }

    /// Requests whose level was not believed, or is none of ours.
    pub(crate) fn levels_refused(&self) -> u64 {
        self.levels_refused.load(Relaxed)
    }

    /// For whoever sees a client depart.
    pub(crate) const fn departures(&self) -> &AtomicU64 {
        &self.departed
    }

    /// Counts a worker as running until the guard is dropped.
    pub(crate) fn run(&self) -> Running<'_> {
        self.running.fetch_add(1, Relaxed);
        Running(&self.running)
    }

    pub(crate) fn requests(&self, kind: Kind) -> RequestStats {
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

    /// Clicks counted, and clicks that were not the first.
    pub(crate) fn clicks(&self) -> (u64, u64) {
        (self.counted.load(Relaxed), self.repeated.load(Relaxed))
    }

    /// Workers running now.
    pub(crate) fn running_now(&self) -> usize {
        self.running.load(Relaxed)
    }

    /// Clients departed so far.
    pub(crate) fn departed_so_far(&self) -> u64 {
        self.departed.load(Relaxed)
    }

    fn of(&self, kind: Kind) -> &RequestCounters {
        match kind {
            Kind::Ad(level) => &self.levels[level.index()],
            Kind::Click => &self.clicks,
            Kind::Admin => &self.admin,
        }
    }
}

/// One running worker.
#[derive(Debug)]
pub(crate) struct Running<'a>(&'a AtomicUsize);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}
