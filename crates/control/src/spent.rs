//! What was used of a resource, window by window, beside what was worked on: to be looked at.

use bywash_discover::Discovery;
use bywash_units::{Span, Time};

use crate::watch::Watched;

/// The last windows.
#[derive(Clone, Debug, PartialEq)]
pub struct Spent {
    /// Units of the resource that there are in a second.
    pub capacity: f64,
    /// Seconds of a window.
    pub step: f64,
    /// The oldest first.
    pub windows: Vec<Window>,
}

/// One of them. What was read of a part of it stands for the whole.
#[derive(Clone, Debug, PartialEq)]
pub struct Window {
    /// Its end.
    pub until: Time,
    /// Units of the resource that were used.
    pub used: f64,
    /// Requests of each pattern that were worked on, parts of them counting as parts.
    pub requests: Vec<f64>,
}

/// So far back it goes.
const KEPT: Span = Span::from_secs(1800);
/// Part of a window that must have been read.
const READ: f64 = 0.5;

impl Spent {
    pub(crate) fn of(
        watched: &Watched,
        discovery: &Discovery,
        columns: &[Option<bywash_discover::Column>],
    ) -> Self {
        let step = discovery.window().as_secs_f64();
        let window = |seen: bywash_discover::Seen<'_>| {
            (seen.read >= READ).then(|| Window {
                until: seen.until,
                used: seen.used[0] / seen.read,
                requests: columns
                    .iter()
                    .map(|column| column.map_or(0.0, |column| seen.worked(column)) / seen.read)
                    .collect(),
            })
        };
        let windows = discovery.windows(KEPT).filter_map(window).collect();
        Self { capacity: watched.capacity, step, windows }
    }

    /// Share of the capacity that so many units of a window are.
    pub fn of_capacity(&self, units: f64) -> f64 {
        units / (self.capacity * self.step)
    }

    /// The same, of so many requests that cost so much each.
    pub fn share(&self, cost: f64, requests: f64) -> f64 {
        self.of_capacity(cost * requests)
    }
}
