//! The sums and response times of a window: the last seconds, minutes or hours.
//!
//! A window is the difference between two readings, so its percentiles are those of the requests in
//! it. Percentiles of its rows cannot be combined: rows have no counts by response time.
//!
//! `Snapshots` keeps the readings at which a window can begin: all of the last minute, one for
//! every 30 s of the last 15 minutes, and one for every 30 minutes of the last day. A window begins
//! at the newest reading that is old enough, or at the start of the process. Its sums come with its
//! real length.

use core::slice;
use std::collections::VecDeque;
use std::sync::Arc;

use bywash_units::TimeSpan;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::columns::OutcomeCounts;
use crate::counts::{ClassCounts, Reading};
use crate::latencies::{BUCKETS, Latencies};

/// The amount by which a window may be shorter than its nominal length, because readings are not
/// exactly a second apart.
const TOLERANCE: TimeSpan = TimeSpan::from_millis(500);

/// The rings of snapshots. For each ring, the minimum time between two snapshots, and the maximum
/// number of snapshots: that of the intervals plus one.
const RINGS: [(TimeSpan, usize); 3] = [
    // The ring of the last minute has every reading, at one per second.
    (TimeSpan::ZERO, 60 + 1),
    // The ring of the last 15 minutes.
    (TimeSpan::from_secs(30), 30 + 1),
    // The ring of the last day.
    (TimeSpan::from_secs(30 * 60), 48 + 1),
];

/// The size of the snapshots is part of the crate's bounds, so it is checked here.
const _: () = assert!(
    size_of::<ClassCounts>() + size_of::<[u32; BUCKETS]>() <= 960,
    "see the bounds in lib.rs"
);

/// A window of time that ends now, over which sums are computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Window {
    /// The last 10 seconds.
    TenSeconds,
    /// The last 60 seconds.
    Minute,
    /// The last 15 minutes.
    QuarterHour,
    /// The last 24 hours.
    Day,
}

impl Window {
    /// All windows, the shortest first.
    pub const ALL: [Self; 4] = [Self::TenSeconds, Self::Minute, Self::QuarterHour, Self::Day];

    /// Returns the window with this name in the API; `None` if there is none.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|window| window.name() == name)
    }

    /// Returns the name of the window in the API.
    pub const fn name(self) -> &'static str {
        match self {
            Self::TenSeconds => "10s",
            Self::Minute => "60s",
            Self::QuarterHour => "15m",
            Self::Day => "24h",
        }
    }

    /// Returns the nominal length of the window.
    pub const fn span(self) -> TimeSpan {
        match self {
            Self::TenSeconds => TimeSpan::from_secs(10),
            Self::Minute => TimeSpan::from_secs(60),
            Self::QuarterHour => TimeSpan::from_secs(15 * 60),
            Self::Day => TimeSpan::from_secs(24 * 3600),
        }
    }
}

/// The sums over the requests that ended in a window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WindowSums {
    /// The real length of the window in seconds. It is shorter than requested if the process has
    /// not run for that long. It may be longer by about 30 s (`15m`) or 30 minutes (`24h`). The
    /// gateway reads its counts once a second. If a reading is late, any window may be longer by
    /// the delay.
    pub length_s: f64,
    /// The sums over the requests of all classes.
    pub all: Sums,
    /// The sums of each class in which a request ended.
    pub classes: Vec<ClassSums>,
}

/// The sums over the requests of one class that ended in a window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClassSums {
    /// The class's name.
    pub name: String,
    /// The sums over the class's requests.
    #[serde(flatten)]
    pub sums: Sums,
}

/// The sums over requests that ended in a window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Sums {
    /// The number of requests, by outcome.
    pub outcomes: OutcomeCounts,
    /// The total service time of requests that were answered in time, in milliseconds.
    pub useful_ms: u64,
    /// The total service time of all other requests, in milliseconds.
    pub wasted_ms: u64,
    /// The median response time in milliseconds, accurate to one part in 16. `null` if there was no
    /// response.
    pub p50_ms: Option<f32>,
    /// The 99th percentile of the response time in milliseconds, accurate to one part in 16. `null`
    /// if there was no response.
    pub p99_ms: Option<f32>,
}

impl WindowSums {
    /// Returns the sums over the requests that ended between two readings. `before` is `None` if
    /// the counts began at zero.
    pub(crate) fn between(before: Option<&Reading>, now: &Reading) -> Self {
        let since = |(index, counts): (usize, &ClassCounts)| {
            counts.since(before.and_then(|before| before.classes.get(index)))
        };
        let since: Vec<ClassCounts> = now.classes.iter().enumerate().map(since).collect();
        let class = |counts: &ClassCounts| ClassSums {
            name: counts.name.to_string(),
            sums: Sums::of(slice::from_ref(counts)),
        };
        let begun_ms = before.map_or(0, |before| before.passed.as_millis());
        Self {
            length_s: (now.passed.as_millis() - begun_ms) as f64 / 1e3,
            all: Sums::of(&since),
            classes: since.iter().map(class).filter(|class| !class.sums.is_nothing()).collect(),
        }
    }
}

impl Sums {
    fn of(classes: &[ClassCounts]) -> Self {
        let mut latencies = Latencies::default();
        for class in classes {
            latencies.add(&class.latencies);
        }
        Self {
            outcomes: OutcomeCounts::of(core::array::from_fn(|at| {
                classes.iter().map(|class| class.outcomes[at]).sum()
            })),
            useful_ms: classes.iter().map(|class| class.useful).sum(),
            wasted_ms: classes.iter().map(|class| class.wasted).sum(),
            p50_ms: latencies.percentile(0.5),
            p99_ms: latencies.percentile(0.99),
        }
    }

    fn is_nothing(&self) -> bool {
        *self == Self::default()
    }
}

/// The readings at which windows can begin. A reading that is in two rings is stored once.
#[derive(Clone, Debug)]
pub(crate) struct Snapshots([SnapshotRing; RINGS.len()]);

#[derive(Clone, Debug)]
struct SnapshotRing {
    readings: VecDeque<Arc<Reading>>,
    every: TimeSpan,
    most: usize,
}

impl Default for Snapshots {
    fn default() -> Self {
        let ring = |(every, most)| SnapshotRing { readings: VecDeque::new(), every, most };
        Self(RINGS.map(ring))
    }
}

impl Snapshots {
    /// Adds a reading to every ring in which one is due. Readings come in the order of their times.
    pub(crate) fn push(&mut self, reading: &Arc<Reading>) {
        self.0.iter_mut().for_each(|ring| ring.push(reading));
    }

    /// Returns the reading at which a window that ends at `now` begins: the newest one that is old
    /// enough. Returns `None` if the window begins at the start of the process.
    pub(crate) fn beginning(&self, window: Window, now: TimeSpan) -> Option<&Reading> {
        let readings = self.0.iter().flat_map(|ring| ring.readings.iter());
        let old = readings.filter(|reading| reading.passed + window.span() <= now + TOLERANCE);
        old.max_by_key(|reading| reading.passed).map(|reading| &**reading)
    }
}

impl SnapshotRing {
    fn push(&mut self, reading: &Arc<Reading>) {
        let is_due = |last: &Arc<Reading>| reading.passed >= last.passed + self.every;
        if self.readings.back().is_none_or(is_due) {
            self.readings.push_back(Arc::clone(reading));
        }
        if self.readings.len() > self.most {
            self.readings.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counts::Gauges;

    #[test]
    fn the_number_of_snapshots_is_bounded() {
        let mut snapshots = Snapshots::default();
        for second in 1..=30 * 3600 {
            let (passed, gauges) = (TimeSpan::from_secs(second), Gauges::default());
            snapshots.push(&Arc::new(Reading { at: 0, passed, gauges, classes: Vec::new() }));
        }
        let kept = snapshots.0.each_ref().map(|ring| ring.readings.len());
        assert_eq!(kept, [61, 31, 49]);
    }

    #[test]
    fn a_window_has_a_name() {
        for window in Window::ALL {
            assert_eq!(Window::named(window.name()), Some(window));
        }
        assert_eq!((Window::named("3h"), Window::named("")), (None, None));
    }
}
