//! What one decision of the engine takes, and how that grows with the number that wait.
//!
//! An engine with one slot and a full queue is asked for one kind of decision in batches of
//! [`BATCH`]; what a batch changed is put right between batches, unmeasured, so that each starts
//! with the same queue. A batch is so short because the smallest queue must outlast it; the cost
//! of reading the clock is measured on empty batches and taken off. Requests enter under numbers
//! in random order, so that neighbours in the queue are no neighbours in memory, and as many
//! sessions are known as requests wait (at most [`SESSIONS`]).
//!
//! Operations that are O(1) still take longer on a large queue, as what they touch is no longer
//! in a cache. How much of the growth is that is told by [`chase`]: one load that depends on the
//! one before, from an array of a cache line for each waiting request, in the same run.
//!
//! What is not a decision and is done between two of them is measured by itself: [`publish`]. So is what one
//! decision in a second has to do besides, where a class can be stopped: [`publish::refresh`].

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

/// Decisions in a batch.
pub const BATCH: usize = 5;
/// Sessions that are known at most.
pub const SESSIONS: u32 = 65_536;

/// A policy in a state in which it decides differently.
#[derive(Clone, Copy, Debug)]
pub struct PolicyCase {
    /// Its name in the catalogue.
    pub policy: &'static str,
    /// Whether it is made to see overload.
    pub overloaded: bool,
    /// What it is asked about.
    pub site: Site,
}

/// What classes there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Site {
    /// Two.
    Small,
    /// As many as there can be, of which every one waits.
    Large,
    /// The same, and any of them can be stopped. Nobody is: whoever runs has just begun. What it takes to ask
    /// all classes what they promise, where that is needed, [`publish::ask`] tells.
    Stoppable,
}

impl PolicyCase {
    /// Every policy of the catalogue; twice those that order otherwise in overload; and the first with many
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
        Self { policy: "session-first", overloaded: false, site: Site::Stoppable },
    ];
}

impl fmt::Display for PolicyCase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let site = match self.site {
            Site::Small => "",
            Site::Large => ", 64 classes",
            Site::Stoppable => ", 64 that can be stopped",
        };
        write!(f, "{}{}{site}", self.policy, if self.overloaded { ", overload" } else { "" })
    }
}

/// What the engine is asked to decide.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// A request of a session in progress comes and the queue is full: a worse one is pushed out,
    /// or, where a policy knows no worse, it is refused.
    Arrive,
    /// A request is over: who is next?
    Next,
    /// A client leaves whose request waits somewhere in the middle.
    Leave,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Arrive, Self::Next, Self::Leave];

    /// For a table.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Arrive => "arrive, queue full",
            Self::Next => "finish, start next",
            Self::Leave => "client gone",
        }
    }
}

/// What one decision took.
#[derive(Clone, Copy, Debug)]
pub struct Cost {
    /// Nanoseconds per decision, median of the batches.
    pub median: f64,
    /// Nanoseconds per decision in the batch that only one in a hundred exceeds.
    pub p99: f64,
    /// Allocations in all batches together.
    pub allocations: u64,
}

impl Cost {
    /// For a report's file.
    pub fn json(&self, waiting: u32) -> Value {
        let [median, p99] = [self.median, self.p99].map(|ns| (ns * 10.0).round() / 10.0);
        let allocations = self.allocations;
        json!({ "waiting": waiting, "ns": median, "p99_ns": p99, "allocations": allocations })
    }
}

/// Times batches of [`BATCH`] and takes the clock's own cost off.
#[derive(Debug)]
pub struct Stopwatch {
    clock: f64,
    batches: usize,
}

impl Stopwatch {
    /// For so many batches of each kind.
    pub fn new(batches: usize) -> Self {
        let mut watch = Self { clock: 0.0, batches };
        watch.clock =
            watch.measure(&mut (), |()| (), |(), ()| (), |(), ()| ()).median * BATCH as f64;
        watch
    }

    /// Nanoseconds that reading the clock twice takes.
    pub const fn clock(&self) -> f64 {
        self.clock
    }

    /// Runs `prepare`, `batch` and `restore` in turn; measures `batch` alone.
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
            let before = counting::asked();
            let start = Instant::now();
            batch(hint::black_box(&mut *subject), hint::black_box(&mut prepared));
            let took = start.elapsed();
            allocations += counting::asked() - before;
            restore(subject, prepared);
            sample.push((took.as_nanos() as f64 - self.clock) / BATCH as f64);
        }
        let at = |p| stats::percentile(&sample, p).unwrap_or(f64::NAN);
        Cost { median: at(0.5), p99: at(0.99), allocations }
    }

    /// What a decision of this kind takes in this engine.
    pub fn decision(&self, loaded: &mut LoadedEngine, kind: Kind) -> Cost {
        match kind {
            Kind::Arrive => self.measure(
                loaded,
                LoadedEngine::newcomers,
                |loaded, batch| loaded.arrive(batch),
                |loaded, batch| loaded.replace_by_new(&batch),
            ),
            Kind::Next => self.measure(
                loaded,
                LoadedEngine::prepare,
                |loaded, ()| loaded.turn_over(),
                |loaded, ()| loaded.refill(),
            ),
            Kind::Leave => self.measure(
                loaded,
                LoadedEngine::leavers,
                |loaded, batch| loaded.leave(batch),
                |loaded, batch| loaded.come_back(&batch),
            ),
        }
    }
}
