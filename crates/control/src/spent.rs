//! Time series of the use of a resource, in total and by route, for charts.
//!
//! The total use of a resource is either measured or counted from requests. If it is measured, the
//! use by a route is an estimate: the route's cost per request, times the number of its requests
//! that were worked on. If it is counted (slots, bytes of responses), the use by a route is counted
//! too.

use bywash_discover::{Column, Discovery, Seen};
use bywash_units::{Time, TimeSpan};

use crate::elephant::Resource;
use crate::slot_use::{SlotUse, WINDOW};

/// The use of a resource in each of the last windows.
#[derive(Clone, Debug, PartialEq)]
pub struct Spent {
    /// The resource's capacity, in units per second.
    pub capacity: f64,
    /// The length of a window, in seconds.
    pub step: f64,
    /// The windows, the oldest first.
    pub windows: Vec<Window>,
}

/// The use in one window. If only part of the window was measured, the use in that part stands for
/// the whole window.
#[derive(Clone, Debug, PartialEq)]
pub struct Window {
    /// The end of the window.
    pub until: Time,
    /// The fraction of the capacity that was used in total.
    pub used: f64,
    /// The use by each of the requested routes, in the order in which the caller named them.
    pub routes: Vec<RouteUse>,
}

/// The use by one route in one window.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RouteUse {
    /// The number of requests that were worked on. A request that spans several windows counts in
    /// each by a fraction.
    pub requests: f64,
    /// The fraction of the capacity that these requests used.
    pub used: f64,
}

/// The total time that the windows cover.
const KEPT: TimeSpan = TimeSpan::from_secs(1800);
/// The fraction of a window that must have been measured. Windows with less are left out.
const MIN_READ_FRACTION: f64 = 0.5;

impl Spent {
    /// Returns the use of a resource whose total use is measured and not counted from requests. For
    /// each route, `routes` has its column and its estimated cost per request, in the resource's
    /// units.
    pub(crate) fn read(
        capacity: f64,
        discovery: &Discovery,
        routes: &[(Option<Column>, f64)],
    ) -> Self {
        let step = discovery.window().as_secs_f64();
        let share = |units: f64| units / (capacity * step);
        let window = |seen: Seen<'_>| {
            let route = |(column, cost): &(Option<Column>, f64)| {
                let requests = column.map_or(0.0, |column| seen.worked(column)) / seen.read;
                RouteUse { requests, used: share(cost * requests) }
            };
            (seen.read >= MIN_READ_FRACTION).then(|| Window {
                until: seen.until,
                used: share(seen.used[0] / seen.read),
                routes: routes.iter().map(route).collect(),
            })
        };
        Self { capacity, step, windows: discovery.windows(KEPT).filter_map(window).collect() }
    }

    /// Returns the use of a resource that is counted from requests: slots, or bytes of responses.
    pub(crate) fn counted(
        capacity: f64,
        of: Resource,
        held: &SlotUse,
        now: Time,
        columns: &[Option<Column>],
    ) -> Self {
        let step = WINDOW.as_secs_f64();
        let use_of = |counts: crate::slot_use::RouteCounts| {
            let units = if of == Resource::Bytes { counts.bytes } else { counts.held };
            RouteUse { requests: counts.requests, used: units / (capacity * step) }
        };
        let windows = held.windows(now, columns).into_iter().map(|(until, routes, all)| Window {
            until,
            used: use_of(all).used,
            routes: routes.into_iter().map(use_of).collect(),
        });
        Self { capacity, step, windows: windows.collect() }
    }
}
