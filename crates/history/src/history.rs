//! The history: rows of the last 15 minutes and of the last day, and the sums of windows.

use std::collections::VecDeque;
use std::sync::Arc;

use bywash_engine::Status;
use bywash_units::TimeSpan;

use crate::columns::Columns;
use crate::counts::{ClassCounts, Gauges, Reading};
use crate::quiet;
use crate::row::Row;
use crate::summary::HistorySummary;
use crate::window::{Snapshots, Window, WindowSums};

/// The maximum number of kept rows of one second each: 15 minutes.
pub const SECONDS: usize = 15 * 60;
/// The maximum number of kept rows of one minute each: a day.
pub const MINUTES: usize = 24 * 60;
/// The maximum number of class names that are kept.
pub const MOST_NAMES: usize = 128;

const MINUTE: TimeSpan = TimeSpan::from_secs(60);

/// A range of rows, by their length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Range {
    /// The rows of the last 15 minutes, one per second.
    Seconds,
    /// The rows of the last day, one per minute.
    Minutes,
}

/// The rows that are kept, and the readings for windows. See the documentation of the crate.
#[derive(Clone, Debug)]
pub struct History {
    names: Names,
    seconds: Ring,
    minutes: Ring,
    last: Option<Arc<Reading>>,
    /// The reading at the beginning of the current minute.
    minute: Option<Arc<Reading>>,
    snapshots: Snapshots,
}

#[derive(Clone, Debug, Default)]
struct Names(Vec<Arc<str>>);

#[derive(Clone, Debug)]
struct Ring {
    rows: VecDeque<Row>,
    most: usize,
    next: u64,
}

impl Default for History {
    fn default() -> Self {
        Self {
            names: Names::default(),
            seconds: Ring::new(SECONDS),
            minutes: Ring::new(MINUTES),
            last: None,
            minute: None,
            snapshots: Snapshots::default(),
        }
    }
}

impl History {
    /// Creates a history that continues from the rows that [`History::columns`] returned for an
    /// earlier one. Invalid columns are dropped. Windows cover only this process, because its
    /// counts begin at zero.
    pub fn restored(seconds: Columns, minutes: Columns) -> Self {
        let mut history = Self::default();
        let names = &mut history.names;
        for (ring, columns) in [(&mut history.seconds, seconds), (&mut history.minutes, minutes)] {
            let rows = columns.rows(|name| names.number(name)).unwrap_or_default();
            // If the numbers of rows were not in order, rows could not be found by number.
            if rows.is_sorted_by(|one, next| one.number < next.number) {
                ring.next = rows.last().map_or(0, |row| row.number.saturating_add(1));
                ring.rows = rows.into();
                ring.bound();
            }
        }
        history
    }

    /// Adds a reading, about a second after the previous one. The first reading is taken at the
    /// start of the process, so its counts begin at zero.
    pub fn read(&mut self, reading: Reading) {
        if self.last.as_ref().is_some_and(|last| last.passed >= reading.passed) {
            return;
        }
        let reading = Arc::new(reading);
        let mut name = |class: &ClassCounts| self.names.number(&class.name);
        let row = Row::between(self.last.as_deref(), &reading, &mut name);
        self.seconds.push(row);
        let begun = self.minute.as_ref().map_or(TimeSpan::ZERO, |minute| minute.passed);
        if reading.passed >= begun + MINUTE {
            let mut row = Row::between(self.minute.as_deref(), &reading, &mut name);
            row.gauges = self.seconds.over(row.lasted, row.gauges);
            self.minutes.push(row);
            self.minute = Some(Arc::clone(&reading));
        }
        self.snapshots.push(&reading);
        self.last = Some(reading);
    }

    /// Returns the newest row of one second. The columns are empty before the first row.
    pub fn newest(&self) -> Columns {
        self.columns(Range::Seconds, self.seconds.next.saturating_sub(1))
    }

    /// Returns the summary of the last 15 minutes.
    pub fn summary(&self) -> HistorySummary {
        HistorySummary::of(self.seconds.rows.iter())
    }

    /// Returns the next time at which the site will be quiet, if the next day is like the last one.
    /// Times are in milliseconds since 1970. The quiet time has one to four quarters of an hour.
    /// Returns `None` if the site is not known to have been quiet in any quarter of an hour of the
    /// last day after the present one.
    pub fn next_quiet(&self, now: u64) -> Option<std::ops::Range<u64>> {
        quiet::next(self.minutes.rows.iter(), now)
    }

    /// Returns the sums of the window that ends with the last reading; zero before the first
    /// reading.
    pub fn window(&self, window: Window) -> WindowSums {
        self.last.as_deref().map_or_else(WindowSums::default, |last| {
            WindowSums::between(self.snapshots.beginning(window, last.passed), last)
        })
    }

    /// Returns the kept rows of one second or of one minute each, as `range` says. The first is the
    /// row with the number `from`, or the oldest later one that is kept.
    pub fn columns(&self, range: Range, from: u64) -> Columns {
        let (ring, step) = match range {
            Range::Seconds => (&self.seconds, 1),
            Range::Minutes => (&self.minutes, 60),
        };
        let known = ring.rows.partition_point(|row| row.number < from);
        Columns::of(step, ring.rows.range(known..), |id| self.names.0[usize::from(id)].to_string())
    }
}

impl Names {
    fn number(&mut self, name: &str) -> Option<u8> {
        let known = self.0.iter().position(|known| **known == *name);
        let number = known.or_else(|| {
            let is_room = self.0.len() < MOST_NAMES;
            is_room.then(|| {
                self.0.push(name.into());
                self.0.len() - 1
            })
        });
        number.and_then(|number| u8::try_from(number).ok())
    }
}

impl Ring {
    const fn new(most: usize) -> Self {
        Self { rows: VecDeque::new(), most, next: 0 }
    }

    fn push(&mut self, row: Row) {
        self.rows.push_back(Row { number: self.next, ..row });
        self.next += 1;
        self.bound();
    }

    fn bound(&mut self) {
        let too_many = self.rows.len().saturating_sub(self.most);
        self.rows.drain(..too_many);
    }

    /// Returns the gauges over the newest rows whose total length is `lasted` milliseconds. The
    /// result has the mean of each number and the maximum wait. A flag is set if it was set in any
    /// of these rows. `now` has the values of the last reading.
    fn over(&self, lasted: u32, now: Gauges) -> Gauges {
        let mut left = lasted;
        let within = |row: &&Row| {
            let is_within = left > 0;
            left = left.saturating_sub(row.lasted);
            is_within
        };
        let stood: Vec<Gauges> =
            self.rows.iter().rev().take_while(within).map(|row| row.gauges).collect();
        let mean = |of: fn(&Gauges) -> u32| {
            let sum: u64 = stood.iter().map(|gauges| u64::from(of(gauges))).sum();
            (sum as f64 / stood.len().max(1) as f64).round() as u32
        };
        let oldest = stood.iter().map(|gauges| gauges.engine.oldest).max();
        Gauges {
            engine: Status {
                limit: mean(|gauges| gauges.engine.limit),
                running: mean(|gauges| gauges.engine.running),
                waiting: mean(|gauges| gauges.engine.waiting),
                throttled_waiting: mean(|gauges| gauges.engine.throttled_waiting),
                oldest: oldest.unwrap_or(now.engine.oldest),
                lifo: stood.iter().any(|gauges| gauges.engine.lifo),
                // The remaining gauges are those of the last reading. The mean service time is
                // already a mean, and the number of sessions hardly changes.
                ..now.engine
            },
            bypassed: stood.iter().any(|gauges| gauges.bypassed),
            connections: mean(|gauges| gauges.connections),
        }
    }
}
