//! What was used of a resource, window by window, and what of it was whose: to be looked at.
//!
//! Of a resource that is read, what a kind used is its cost times the requests that were worked on. Of one that is counted
//! (slots, bytes of answers) it is what was counted.

use bywash_discover::{Column, Discovery, Seen};
use bywash_units::{Span, Time};

use crate::elephant::Resource;
use crate::held::{Held, WINDOW};

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
    /// Share of the capacity that was used.
    pub used: f64,
    /// By each of the kinds that were asked for.
    pub kinds: Vec<Lot>,
}

/// What one kind did in a window.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Lot {
    /// Requests that were worked on, parts of them counting as parts.
    pub requests: f64,
    /// Share of the capacity that they used.
    pub used: f64,
}

/// So far back it goes.
const KEPT: Span = Span::from_secs(1800);
/// Part of a window that must have been read.
const READ: f64 = 0.5;

impl Spent {
    /// Of a resource that is read; each kind with its cost.
    pub(crate) fn read(
        capacity: f64,
        discovery: &Discovery,
        kinds: &[(Option<Column>, f64)],
    ) -> Self {
        let step = discovery.window().as_secs_f64();
        let share = |units: f64| units / (capacity * step);
        let window = |seen: Seen<'_>| {
            let kind = |(column, cost): &(Option<Column>, f64)| {
                let requests = column.map_or(0.0, |column| seen.worked(column)) / seen.read;
                Lot { requests, used: share(cost * requests) }
            };
            (seen.read >= READ).then(|| Window {
                until: seen.until,
                used: share(seen.used[0] / seen.read),
                kinds: kinds.iter().map(kind).collect(),
            })
        };
        Self { capacity, step, windows: discovery.windows(KEPT).filter_map(window).collect() }
    }

    /// Of one that is counted.
    pub(crate) fn counted(
        capacity: f64,
        of: Resource,
        held: &Held,
        now: Time,
        columns: &[Option<Column>],
    ) -> Self {
        let step = WINDOW.as_secs_f64();
        let lot = |lot: crate::held::Lot| {
            let units = if of == Resource::Bytes { lot.bytes } else { lot.held };
            Lot { requests: lot.requests, used: units / (capacity * step) }
        };
        let windows = held.windows(now, columns).into_iter().map(|(until, kinds, all)| Window {
            until,
            used: lot(all).used,
            kinds: kinds.into_iter().map(lot).collect(),
        });
        Self { capacity, step, windows: windows.collect() }
    }
}
