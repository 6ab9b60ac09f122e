//! Rows of work: how many requests of each route were worked on in each window, in fractions.
//!
//! A request is reported when it has ended, but belongs to all windows since its start. So windows
//! stay open for a while, and are closed in order.
//!
//! It is not visible when within its time span a request computes. If requests share processors,
//! each request computes all the time ([`Spread::Whole`]). At a saturated server that serves in
//! order of arrival, each request waits and computes at the end ([`Spread::Late`]). The sums are
//! kept for both assumptions. For each resource, the assumption that attributes its use to fewer
//! routes is chosen.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use bywash_units::{Time, TimeSpan};

use crate::columns::Column;

/// The assumption about when, within its time span, a request computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spread {
    /// The request computes over its whole time span.
    Whole,
    /// The request computes in the last step before its end.
    Late,
}

impl Spread {
    pub(crate) const ALL: [Self; 2] = [Self::Whole, Self::Late];
}

/// The weight of a request in a window, under each assumption of [`Spread`].
pub(crate) type Weight = [f64; Spread::ALL.len()];

/// Weights by route, sorted by route. Each route has one entry.
#[derive(Clone, Debug)]
pub(crate) struct ByRoute<const N: usize>(Vec<(Column, [f64; N])>);

/// The work in a window: the weights of requests by route, under each assumption of [`Spread`].
pub(crate) type Work = ByRoute<{ Spread::ALL.len() }>;

impl<const N: usize> Default for ByRoute<N> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<const N: usize> ByRoute<N> {
    fn put(&mut self, column: Column, weight: [f64; N]) {
        match self.0.binary_search_by_key(&column, |(known, _)| *known) {
            Ok(at) => self.0[at].1.iter_mut().zip(weight).for_each(|(sum, more)| *sum += more),
            Err(at) => self.0.insert(at, (column, weight)),
        }
    }

    pub(crate) fn add(&mut self, other: &Self) {
        other.all().iter().for_each(|(column, weight)| self.put(*column, *weight));
    }

    pub(crate) fn all(&self) -> &[(Column, [f64; N])] {
        &self.0
    }

    /// Adds the weight of a route to that of all other routes, and removes the route.
    pub(crate) fn fold(&mut self, column: Column) {
        if let Ok(at) = self.0.binary_search_by_key(&column, |(known, _)| *known) {
            let (_, weight) = self.0.remove(at);
            self.put(Column::OTHER, weight);
        }
    }
}

/// The work in one window. Only routes with work in it have entries.
#[derive(Clone, Debug, Default)]
pub(crate) struct Row {
    pub(crate) work: Work,
    /// The number of requests that began in the window, by route.
    pub(crate) begun: ByRoute<1>,
}

impl Row {
    fn fold(&mut self, column: Column) {
        self.work.fold(column);
        self.begun.fold(column);
    }
}

/// The open windows, to which requests that end later may still belong.
#[derive(Clone, Debug)]
pub(crate) struct Rows {
    step: TimeSpan,
    /// The number of the first open window; windows are numbered from the start of the clock.
    first: u64,
    open: VecDeque<Row>,
    most: usize,
}

impl Rows {
    /// Creates rows of which at most `most` windows are open at a time.
    pub(crate) fn new(step: TimeSpan, most: usize) -> Self {
        Self { step, first: 0, open: VecDeque::new(), most }
    }

    pub(crate) fn number(&self, at: Time) -> u64 {
        at.as_nanos() / self.step.as_nanos()
    }

    /// Adds `count` requests of a route that were worked on from `from` to `to`. The parts in
    /// windows that are closed or too far ahead are lost. Returns the fraction of a request that was
    /// not lost.
    pub(crate) fn spread(&mut self, column: Column, from: Time, to: Time, count: f64) -> f64 {
        let to = to.max(from);
        let late = Time::from_nanos(to.as_nanos().saturating_sub(self.step.as_nanos())).max(from);
        let (begins, ends) = (self.number(from), self.number(to));
        if let Some(row) = self.row(begins) {
            row.begun.put(column, [count]);
        }
        let last = ends.min(self.first + self.most as u64);
        let mut kept = 0.0;
        for number in begins.max(self.first)..=last {
            let weight = [self.part(number, from, to), self.part(number, late, to)];
            if let Some(row) = self.row(number) {
                row.work.put(column, weight.map(|weight| count * weight));
                kept += weight[0];
            }
        }
        kept
    }

    /// Returns the fraction of the time from `from` to `to` that lies in the window with this
    /// number.
    fn part(&self, number: u64, from: Time, to: Time) -> f64 {
        let step = self.step.as_nanos();
        let (begins, ends) = (from.as_nanos(), to.as_nanos());
        if begins == ends {
            return f64::from(u8::from(begins / step == number));
        }
        let inside = ends.min((number + 1) * step).saturating_sub(begins.max(number * step));
        inside as f64 / (ends - begins) as f64
    }

    fn row(&mut self, number: u64) -> Option<&mut Row> {
        let at = usize::try_from(number.checked_sub(self.first)?).ok()?;
        if at >= self.most {
            return None;
        }
        if at >= self.open.len() {
            self.open.resize_with(at + 1, Row::default);
        }
        self.open.get_mut(at)
    }

    /// Returns the number of the first open window.
    pub(crate) fn first(&self) -> u64 {
        self.first
    }

    /// Closes the first open window, and returns its work.
    pub(crate) fn close(&mut self) -> Row {
        self.first += 1;
        self.open.pop_front().unwrap_or_default()
    }

    /// Drops all windows before the one with this number, after a gap in time.
    pub(crate) fn skip_to(&mut self, number: u64) {
        if number > self.first {
            self.open.clear();
            self.first = number;
        }
    }

    pub(crate) fn fold(&mut self, column: Column) {
        self.open.iter_mut().for_each(|row| row.fold(column));
    }
}
