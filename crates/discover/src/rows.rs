//! Requests become rows: how much of each kind was worked on in a window.
//!
//! A request is known when it has ended, and belongs to all windows since its beginning. So windows stay open for a
//! while, and are closed in their order.
//!
//! When inside its span it computes nobody sees. Where requests share processors it is all along ([`Spread::Whole`]);
//! where they wait for their turn, as at a full server that serves in the order of coming, it is at the end
//! ([`Spread::Late`]). Both are kept, and what fits better is believed.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use bywash_units::{Span, Time};

use crate::columns::Column;

/// When a request is thought to have computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spread {
    /// All along.
    Whole,
    /// In the last window's length before its end.
    Late,
}

impl Spread {
    pub(crate) const ALL: [Self; 2] = [Self::Whole, Self::Late];
}

/// A request's weight in a window, by [`Spread`].
pub(crate) type Weight = [f64; Spread::ALL.len()];

/// Weights by kind, each kind once, in their order.
#[derive(Clone, Debug)]
pub(crate) struct ByKind<const N: usize>(Vec<(Column, [f64; N])>);

/// What was worked on.
pub(crate) type Work = ByKind<{ Spread::ALL.len() }>;

impl<const N: usize> Default for ByKind<N> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<const N: usize> ByKind<N> {
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

    /// What was of one kind is of the others now.
    pub(crate) fn fold(&mut self, column: Column) {
        if let Ok(at) = self.0.binary_search_by_key(&column, |(known, _)| *known) {
            let (_, weight) = self.0.remove(at);
            self.put(Column::OTHER, weight);
        }
    }
}

/// One window: few kinds of many.
#[derive(Clone, Debug, Default)]
pub(crate) struct Row {
    pub(crate) work: Work,
    /// Requests that began.
    pub(crate) begun: ByKind<1>,
}

impl Row {
    fn fold(&mut self, column: Column) {
        self.work.fold(column);
        self.begun.fold(column);
    }
}

/// Windows that requests may still belong to.
#[derive(Clone, Debug)]
pub(crate) struct Rows {
    step: Span,
    /// Number of the first that is open.
    first: u64,
    open: VecDeque<Row>,
    most: usize,
}

impl Rows {
    /// At most so many windows are open at a time.
    pub(crate) fn new(step: Span, most: usize) -> Self {
        Self { step, first: 0, open: VecDeque::new(), most }
    }

    pub(crate) fn number(&self, at: Time) -> u64 {
        at.as_nanos() / self.step.as_nanos()
    }

    /// A request was worked on between these moments. What of it lies in windows that are closed, or too far ahead, is
    /// lost: the share that was not.
    pub(crate) fn spread(&mut self, column: Column, from: Time, to: Time) -> f64 {
        let to = to.max(from);
        let late = Time::from_nanos(to.as_nanos().saturating_sub(self.step.as_nanos())).max(from);
        let (begins, ends) = (self.number(from), self.number(to));
        if let Some(row) = self.row(begins) {
            row.begun.put(column, [1.0]);
        }
        let last = ends.min(self.first + self.most as u64);
        let mut kept = 0.0;
        for number in begins.max(self.first)..=last {
            let weight = [self.part(number, from, to), self.part(number, late, to)];
            if let Some(row) = self.row(number) {
                row.work.put(column, weight);
                kept += weight[0];
            }
        }
        kept
    }

    /// What part of the time between these moments lies in this window.
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

    /// The number of the first window that is open.
    pub(crate) fn first(&self) -> u64 {
        self.first
    }

    /// Closes the first window.
    pub(crate) fn close(&mut self) -> Row {
        self.first += 1;
        self.open.pop_front().unwrap_or_default()
    }

    /// Nothing before this window is of interest: after a gap in time.
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
