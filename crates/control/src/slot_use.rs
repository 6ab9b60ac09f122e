//! Counts the use of slots and bytes by each route in each window: how long the route's requests
//! held slots, and how many bytes their responses had.
//!
//! A request is reported when it has ended, but it held its slot from its start. Therefore its slot
//! time is divided among all windows in which it ran, up to the last [`WINDOWS`].

use std::collections::VecDeque;

use bywash_discover::Column;
use bywash_units::{Time, TimeSpan};

/// The length of a window. It equals the length of a coarse window in discovery.
pub(crate) const WINDOW: TimeSpan = TimeSpan::from_secs(5);
/// The maximum number of windows that are kept: half an hour.
const WINDOWS: usize = 360;

/// The counts of one route in one window.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct RouteCounts {
    /// The number of requests. A request that spans several windows counts in each by a fraction.
    pub(crate) requests: f64,
    /// The time that the requests held slots, in slot-seconds.
    pub(crate) held: f64,
    pub(crate) bytes: f64,
}

impl RouteCounts {
    fn add(&mut self, other: Self) {
        self.requests += other.requests;
        self.held += other.held;
        self.bytes += other.bytes;
    }
}

/// The counts of the routes that had requests in a window, sorted by column, each once.
type RouteCountsOfWindow = Vec<(Column, RouteCounts)>;

/// The counts of all routes in the last windows. See the documentation of the module.
#[derive(Clone, Debug, Default)]
pub(crate) struct SlotUse {
    /// The number of the oldest window that is kept. Window 0 begins at time zero.
    first: u64,
    windows: VecDeque<RouteCountsOfWindow>,
}

impl SlotUse {
    /// Counts a request that the application worked on from `from` to `to`. A request that ended
    /// before the oldest window is ignored.
    pub(crate) fn request(&mut self, column: Column, from: Time, to: Time, bytes: f64) {
        let last = number(to);
        self.reach(last);
        let whole = to.since(from).as_secs_f64();
        for window in number(from).max(self.first)..=last {
            let begins = Time::from_nanos(window * WINDOW.as_nanos());
            let (from, to) = (from.max(begins), to.min(begins + WINDOW));
            let held = to.since(from).as_secs_f64();
            let part = if whole > 0.0 { held / whole } else { 1.0 };
            put(
                &mut self.windows[(window - self.first) as usize],
                column,
                RouteCounts { requests: part, held, bytes: bytes * part },
            );
        }
    }

    /// Adds empty windows up to number `last`, and removes the oldest ones beyond the number that
    /// is kept.
    fn reach(&mut self, last: u64) {
        let kept = WINDOWS as u64;
        if self.windows.is_empty() || last >= self.first + 2 * kept {
            self.windows.clear();
            self.first = last;
        }
        while self.first + self.windows.len() as u64 <= last {
            self.windows.push_back(RouteCountsOfWindow::new());
        }
        let too_many = self.windows.len().saturating_sub(WINDOWS);
        self.windows.drain(..too_many);
        self.first += too_many as u64;
    }

    /// Adds the counts of a column to those of the other routes, because the name of the column's
    /// route was withdrawn.
    pub(crate) fn forget(&mut self, column: Column) {
        for window in &mut self.windows {
            if let Ok(at) = window.binary_search_by_key(&column, |(known, _)| *known) {
                let (_, lot) = window.remove(at);
                put(window, Column::OTHER, lot);
            }
        }
    }

    /// Returns the complete windows, the oldest first: the end of each, its counts for each of
    /// `columns`, and its counts for all routes together.
    pub(crate) fn windows(
        &self,
        now: Time,
        columns: &[Option<Column>],
    ) -> Vec<(Time, Vec<RouteCounts>, RouteCounts)> {
        let (now, none) = (number(now), RouteCountsOfWindow::new());
        let oldest = self.first.max(now.saturating_sub(WINDOWS as u64));
        let over = if self.windows.is_empty() { now..now } else { oldest..now };
        over.map(|number| {
            // A window without requests may be missing.
            let window = self.windows.get((number - self.first) as usize).unwrap_or(&none);
            let of = |column: &Option<Column>| {
                column.map_or_else(RouteCounts::default, |column| of(window, column))
            };
            let mut all = RouteCounts::default();
            for (_, lot) in window {
                all.add(*lot);
            }
            let end = (number + 1) * WINDOW.as_nanos();
            (Time::from_nanos(end), columns.iter().map(of).collect(), all)
        })
        .collect()
    }
}

fn number(at: Time) -> u64 {
    at.as_nanos() / WINDOW.as_nanos()
}

fn of(window: &RouteCountsOfWindow, column: Column) -> RouteCounts {
    let at = window.binary_search_by_key(&column, |(known, _)| *known);
    at.map_or_else(|_| RouteCounts::default(), |at| window[at].1)
}

fn put(window: &mut RouteCountsOfWindow, column: Column, lot: RouteCounts) {
    match window.binary_search_by_key(&column, |(known, _)| *known) {
        Ok(at) => window[at].1.add(lot),
        Err(at) => window.insert(at, (column, lot)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: f64) -> Time {
        Time::from_nanos((seconds * 1e9) as u64)
    }

    fn column(number: usize) -> Column {
        Column::new(number).unwrap()
    }

    #[test]
    fn a_request_is_of_all_windows_that_it_lasted_in() {
        let mut held = SlotUse::default();
        held.request(column(1), at(3.0), at(11.0), 800.0);
        held.request(column(2), at(6.0), at(6.0), 7.0);
        let windows = held.windows(at(15.0), &[Some(column(1)), Some(column(2)), None]);
        assert_eq!(
            windows.iter().map(|(end, ..)| *end).collect::<Vec<_>>(),
            [at(15.0)],
            "it began unseen"
        );
        let mut held = SlotUse::default();
        held.request(column(2), at(1.0), at(1.0), 7.0);
        held.request(column(1), at(3.0), at(11.0), 800.0);
        let windows = held.windows(at(15.0), &[Some(column(1)), Some(column(2)), None]);
        let of_first: Vec<f64> = windows.iter().map(|(_, lots, _)| lots[0].held).collect();
        assert_eq!(of_first, [2.0, 5.0, 1.0]);
        assert_eq!(windows[0].1[1], RouteCounts { requests: 1.0, held: 0.0, bytes: 7.0 });
        assert_eq!(windows[0].2, RouteCounts { requests: 1.25, held: 2.0, bytes: 207.0 });
        assert_eq!(windows[1].1[2], RouteCounts::default());
        assert_eq!(held.windows(at(14.0), &[]).len(), 2, "the last is not over");
    }

    #[test]
    fn no_more_than_half_an_hour_is_kept_whatever_comes() {
        let mut held = SlotUse::default();
        for second in 0..4_000_u32 {
            held.request(column(1), at(0.0), at(f64::from(second)), 1.0);
        }
        assert_eq!(held.windows.len(), WINDOWS);
        held.request(column(1), at(0.0), at(1e9), 1.0);
        assert!(held.windows.len() <= WINDOWS);
        // A request that ended before the oldest window is ignored.
        held.request(column(1), at(0.0), at(1.0), 1.0);
    }

    #[test]
    fn while_nobody_asks_there_are_windows_with_nothing_and_old_ones_go() {
        let mut held = SlotUse::default();
        held.request(column(1), at(0.0), at(1.0), 1.0);
        let windows = held.windows(at(20.0), &[Some(column(1))]);
        let of: Vec<f64> = windows.iter().map(|(_, lots, _)| lots[0].held).collect();
        assert_eq!(of, [1.0, 0.0, 0.0, 0.0]);
        let later = held.windows(at(7200.0), &[Some(column(1))]);
        assert_eq!(later.len(), WINDOWS);
        assert!(later.iter().all(|(end, lots, _)| lots[0].held == 0.0 && *end > at(5400.0)));
        assert!(SlotUse::default().windows(at(7200.0), &[]).is_empty());
    }

    #[test]
    fn what_is_forgotten_is_of_the_others() {
        let mut held = SlotUse::default();
        held.request(column(1), at(0.0), at(1.0), 1.0);
        held.request(column(2), at(0.0), at(1.0), 1.0);
        held.forget(column(1));
        let windows = held.windows(at(5.0), &[Some(column(1)), Some(Column::OTHER)]);
        assert_eq!((windows[0].1[0].held, windows[0].1[1].held), (0.0, 1.0));
    }
}
