//! Measures the time of one decision of the engine, and how it grows with the number of waiting
//! requests.
//!
//! An engine with one slot and a full queue makes one kind of decision in batches of [`BATCH`]. The
//! queue is restored after each batch, so that each batch starts with the same queue. The restoring
//! is not measured. Batches are short, so that even the smallest queue is not empty before the end
//! of a batch. The cost of reading the clock is measured on empty batches and subtracted. Request
//! numbers are in random order, so that adjacent requests in the queue are not adjacent in memory.
//! The engine knows as many sessions as requests wait, but at most [`SESSIONS`].
//!
//! Operations in O(1) still take longer on a large queue, because the memory that they touch is no
//! longer in a cache. [`chase`] measures that part of the growth in the same run. It loads cache
//! lines from an array of one line per waiting request, and each load depends on the previous one.
//!
//! Two further parts are measured separately. [`publish`] measures work between decisions. If a
//! class can be stopped, one decision per second does additional work, which [`publish::refresh`]
//! measures.

pub mod chase;
pub mod counting;
pub mod loaded_engine;
pub mod publish;

use std::fmt;
use std::hint;
use std::time::Instant;

use bywash_harness::stats;
use serde_json::{Value, json};

use loaded_engine::LoadedEngine;

/// Number of decisions in a batch.
pub const BATCH: usize = 5;
/// Maximum number of sessions that the engine knows.
pub const SESSIONS: u32 = 65_536;

/// A policy to measure, with a load state and a set of classes.
#[derive(Clone, Copy, Debug)]
pub struct PolicyCase {
    /// The policy's name in the catalogue.
    pub policy: &'static str,
    /// Whether the engine is in overload.
    pub overloaded: bool,
    /// The set of classes of the requests.
    pub site: Site,
}

/// A set of classes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Site {
    /// Two classes.
    Small,
    /// The maximum number of classes, with waiting requests of each.
    Large,
    /// The classes of [`Self::Large`], each of which can be stopped. No request is stopped, because
    /// the running request has just begun. [`publish::ask`] separately measures the cost to query
    /// the promise (the expected number of completed requests per second) of each class.
    Cancellable,
}

impl PolicyCase {
    /// Every policy of the catalogue. A policy that orders requests differently in overload is
    /// included twice, with and without overload. Only `lifo-pri` is not, because it equals
    /// `always-fifo` without overload. The first policy is also included with each set of many
    /// classes.
    pub const ALL: [Self; 9] = [
        Self { policy: "session-first", overloaded: false, site: Site::Small },
        Self { policy: "session-first", overloaded: true, site: Site::Small },
        Self { policy: "value-index", overloaded: false, site: Site::Small },
        Self { policy: "value-index", overloaded: true, site: Site::Small },
        Self { policy: "lifo-pri", overloaded: true, site: Site::Small },
        Self { policy: "always-fifo", overloaded: false, site: Site::Small },
        Self { policy: "single-queue", overloaded: false, site: Site::Small },
        Self { policy: "session-first", overloaded: false, site: Site::Large },
        Self { policy: "session-first", overloaded: false, site: Site::Cancellable },
    ];
}

impl fmt::Display for PolicyCase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let site = match self.site {
            Site::Small => "",
            Site::Large => ", 64 classes",
            Site::Cancellable => ", 64 that can be stopped",
        };
        write!(f, "{}{}{site}", self.policy, if self.overloaded { ", overload" } else { "" })
    }
}

/// A kind of decision.
#[derive(Clone, Copy, Debug)]
pub enum DecisionKind {
    /// A request of a session in progress arrives at a full queue. The policy evicts a worse
    /// request, or refuses the new one if no waiting request is worse.
    Arrive,
    /// A request has finished, and the engine chooses the next one.
    Next,
    /// The client of a request somewhere in the queue leaves.
    Leave,
}

impl DecisionKind {
    /// All kinds of decisions.
    pub const ALL: [Self; 3] = [Self::Arrive, Self::Next, Self::Leave];

    /// Returns the name of the decision for a table.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Arrive => "arrive, queue full",
            Self::Next => "finish, start next",
            Self::Leave => "client gone",
        }
    }
}

/// The cost of one decision of a kind.
#[derive(Clone, Copy, Debug)]
pub struct Cost {
    /// Median over the batches of the time per decision, in nanoseconds.
    pub median: f64,
    /// 99th percentile over the batches of the time per decision, in nanoseconds.
    pub p99: f64,
    /// Total number of memory allocations in all batches.
    pub allocations: u64,
}

impl Cost {
    /// Returns the cost as JSON for a report, with the number of waiting requests.
    pub fn json(&self, waiting: u32) -> Value {
        let [median, p99] = [self.median, self.p99].map(|ns| (ns * 10.0).round() / 10.0);
        let allocations = self.allocations;
        json!({ "waiting": waiting, "ns": median, "p99_ns": p99, "allocations": allocations })
    }
}

/// A timer for batches of [`BATCH`] decisions, which subtracts the cost of reading the clock.
#[derive(Debug)]
pub struct Stopwatch {
    clock: f64,
    batches: usize,
}

impl Stopwatch {
    /// Creates a stopwatch that measures `batches` batches of each kind.
    pub fn new(batches: usize) -> Self {
        let mut watch = Self { clock: 0.0, batches };
        watch.clock =
            watch.measure(&mut (), |()| (), |(), ()| (), |(), ()| ()).median * BATCH as f64;
        watch
    }

    /// Returns the cost of two reads of the clock, in nanoseconds.
    pub const fn clock(&self) -> f64 {
        self.clock
    }

    /// Runs `prepare`, `batch` and `restore` in turn, and measures the time and the allocations of
    /// `batch` only.
    pub fn measure<S, P>(
        &self,
        subject: &mut S,
        mut prepare: impl FnMut(&mut S) -> P,
        mut batch: impl FnMut(&mut S, &mut P),
        mut restore: impl FnMut(&mut S, P),
    ) -> Cost {
        let mut sample = Vec::with_capacity(self.batches);
        let mut allocations = 0;
        for _ in 0..self.batches {
            let mut prepared = prepare(subject);
            let before = counting::allocations();
            let start = Instant::now();
            batch(hint::black_box(&mut *subject), hint::black_box(&mut prepared));
            let took = start.elapsed();
            allocations += counting::allocations() - before;
            restore(subject, prepared);
            sample.push((took.as_nanos() as f64 - self.clock) / BATCH as f64);
        }
        let at = |p| stats::percentile(&sample, p).unwrap_or(f64::NAN);
        Cost { median: at(0.5), p99: at(0.99), allocations }
    }

    /// Measures the cost of a decision of `kind` in the engine `loaded`.
    pub fn decision(&self, loaded: &mut LoadedEngine, kind: DecisionKind) -> Cost {
        match kind {
            DecisionKind::Arrive => self.measure(
                loaded,
                LoadedEngine::new_batch,
                |loaded, batch| loaded.arrive(batch),
                |loaded, batch| loaded.replace_by_new(&batch),
            ),
            DecisionKind::Next => self.measure(
                loaded,
                LoadedEngine::prepare,
                |loaded, ()| loaded.finish_batch(),
                |loaded, ()| loaded.refill(),
            ),
            DecisionKind::Leave => self.measure(
                loaded,
                LoadedEngine::leaving_batch,
                |loaded, batch| loaded.leave(batch),
                |loaded, batch| loaded.requeue(&batch),
            ),
        }
    }
}
