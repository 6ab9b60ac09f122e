//! Sums over all short windows, in which older windows count less.
//!
//! The weight of a window halves with each half-life. Instead of scaling all sums down in every
//! window, newer windows get a larger weight. All sums are scaled down only when that weight gets
//! too large.
//!
//! In this module, x(j) is the work on route j in a window, y is the use of a resource, and a(j) is
//! the number of requests of route j that began.

use alloc::vec;
use alloc::vec::Vec;

use crate::columns::{Column, MOST_COLUMNS};
use crate::rows::{Row, Spread, Weight, Work};

/// The number of columns: those of routes, and one for all other routes together.
pub(crate) const ALL: usize = MOST_COLUMNS + 1;

/// The weight of a new window from which on all sums are scaled down.
const HEAVY: f64 = 1e100;

/// The weighted sums over all windows. See the module documentation.
#[derive(Clone, Debug)]
pub(crate) struct Sums {
    /// The weight of a window divided by that of the window before.
    growth: f64,
    /// The weight of the next window.
    weight: f64,
    /// The sum of the weights of all windows.
    pub(crate) count: f64,
    /// The weighted sum of the durations of requests in seconds, and the weighted sum of their
    /// squares.
    spans: [f64; 2],
    /// Σ x(j) x(k) for j ≤ k: a matrix of `ALL` × `ALL`.
    gram: Vec<Weight>,
    /// Σ x(j), by column.
    work: Vec<Weight>,
    /// Σ x(j) y, by resource and column.
    cross: Vec<Vec<Weight>>,
    /// Σ y and Σ y², by resource; y is the use of the resource in a window.
    used: Vec<[f64; 2]>,
    /// Σ a(j) and Σ a(j)², by column; a(j) counts the requests that began.
    begun: Vec<[f64; 2]>,
    /// Σ a(j) y, by resource and column.
    begun_cross: Vec<Vec<f64>>,
}

impl Sums {
    /// Creates empty sums for `resources` resources. `fading` is the fraction of a window's weight
    /// that remains one window later.
    pub(crate) fn new(resources: usize, fading: f64) -> Self {
        Self {
            growth: 1.0 / fading,
            weight: 1.0,
            count: 0.0,
            spans: [0.0; 2],
            gram: vec![Weight::default(); ALL * ALL],
            work: vec![Weight::default(); ALL],
            cross: vec![vec![Weight::default(); ALL]; resources],
            used: vec![[0.0; 2]; resources],
            begun: vec![[0.0; 2]; ALL],
            begun_cross: vec![vec![0.0; ALL]; resources],
        }
    }

    /// Adds `count` requests with this duration in seconds.
    pub(crate) fn add_durations(&mut self, seconds: f64, count: f64) {
        self.spans[0] += self.weight * count * seconds;
        self.spans[1] += self.weight * count * seconds * seconds;
    }

    /// Returns the mean duration of requests in seconds, weighted by duration; 0 if there was none.
    pub(crate) fn span(&self) -> f64 {
        if self.spans[0] > 0.0 { self.spans[1] / self.spans[0] } else { 0.0 }
    }

    /// Adds a window: its work and the use of each resource in it.
    pub(crate) fn add(&mut self, row: &Row, used: &[f64]) {
        self.add_work(&row.work, used);
        let weight = self.weight;
        for (j, [count]) in row.begun.all() {
            self.begun[j.index()][0] += weight * count;
            self.begun[j.index()][1] += weight * count * count;
        }
        for (cross, y) in self.begun_cross.iter_mut().zip(used) {
            row.begun.all().iter().for_each(|(j, [count])| cross[j.index()] += weight * count * y);
        }
        self.pass(1);
    }

    /// Adds the work of a window, and the use of each resource in the window. Leaves out the sums
    /// for [`Self::correlation`].
    pub(crate) fn add_work(&mut self, work: &Work, used: &[f64]) {
        let weight = self.weight;
        self.count += weight;
        for (at, (j, x)) in work.all().iter().enumerate() {
            let x = x.map(|x| weight * x);
            add(&mut self.work[j.index()], x);
            let line = &mut self.gram[j.index() * ALL..][..ALL];
            for (k, other) in &work.all()[at..] {
                add(&mut line[k.index()], [x[0] * other[0], x[1] * other[1]]);
            }
            for (cross, y) in self.cross.iter_mut().zip(used) {
                add(&mut cross[j.index()], x.map(|x| x * y));
            }
        }
        for ([sum, squares], y) in self.used.iter_mut().zip(used) {
            *sum += weight * y;
            *squares += weight * y * y;
        }
    }

    /// Advances time by `windows` windows, so that the earlier ones weigh less.
    pub(crate) fn pass(&mut self, windows: u32) {
        self.weight *= libm::pow(self.growth, f64::from(windows));
        if self.weight > HEAVY {
            self.scale(1.0 / self.weight);
            self.weight = 1.0;
        }
    }

    fn scale(&mut self, by: f64) {
        self.count *= by;
        self.spans = self.spans.map(|sum| sum * by);
        let by_spread =
            self.gram.iter_mut().chain(&mut self.work).chain(self.cross.iter_mut().flatten());
        by_spread.flatten().for_each(|sum| *sum *= by);
        self.begun_cross.iter_mut().flatten().for_each(|sum| *sum *= by);
        self.used.iter_mut().chain(&mut self.begun).flatten().for_each(|sum| *sum *= by);
    }

    /// Adds the sums of a route to those of all other routes, and frees the column of the route.
    pub(crate) fn fold(&mut self, column: Column) {
        let (from, to) = (column.index(), Column::OTHER.index());
        if from == to {
            return;
        }
        // The first column is that of all other routes.
        let lost = core::mem::take(&mut self.gram[gram_index(from, from)]);
        let both = core::mem::take(&mut self.gram[gram_index(to, from)]);
        add(&mut self.gram[to * ALL + to], lost);
        add(&mut self.gram[to * ALL + to], both.map(|both| 2.0 * both));
        for k in (1..ALL).filter(|k| *k != from) {
            let sum = core::mem::take(&mut self.gram[gram_index(from, k)]);
            add(&mut self.gram[to * ALL + k], sum);
        }
        for sums in core::iter::once(&mut self.work).chain(&mut self.cross) {
            let sum = core::mem::take(&mut sums[from]);
            add(&mut sums[to], sum);
        }
        for sums in &mut self.begun_cross {
            sums[to] += core::mem::take(&mut sums[from]);
        }
        // It is unknown how often requests of both routes began in the same window. So the paper's
        // statistic is approximate for all other routes together.
        let [count, squares] = core::mem::take(&mut self.begun[from]);
        self.begun[to][0] += count;
        self.begun[to][1] += squares;
    }

    /// Returns Σ x(j) x(k), for the least-squares fit.
    pub(crate) fn products(&self, spread: Spread, j: Column, k: Column) -> f64 {
        self.gram[gram_index(j.index(), k.index())][spread as usize]
    }

    /// Returns Σ x(j) y, for the least-squares fit.
    pub(crate) fn cross(&self, spread: Spread, j: Column, resource: usize) -> f64 {
        self.cross[resource][j.index()][spread as usize]
    }

    /// Returns the number of requests of a route. The newest window counts fully, and each older
    /// one counts less.
    pub(crate) fn work(&self, column: Column) -> f64 {
        self.work[column.index()][Spread::Whole as usize] / self.weight
    }

    /// Returns the use of a resource beyond its idle use, in seconds. The newest window counts
    /// fully, and each older one counts less.
    pub(crate) fn used(&self, resource: usize) -> f64 {
        self.used[resource][0] / self.weight
    }

    /// Returns Pearson's coefficient of the work on two routes.
    pub(crate) fn alike(&self, j: Column, k: Column) -> f64 {
        let at = |j, k| self.products(Spread::Whole, j, k) / self.count;
        let mean = |j: Column| self.work[j.index()][Spread::Whole as usize] / self.count;
        let together = at(j, k) - mean(j) * mean(k);
        let alone = |j: Column| at(j, j) - mean(j) * mean(j);
        together / libm::sqrt(alone(j) * alone(k))
    }

    /// Returns Pearson's coefficient of the requests that began and the use of a resource, per
    /// window. Returns `None` if either never varied.
    pub(crate) fn correlation(&self, column: Column, resource: usize) -> Option<f64> {
        let ([count, squares], [used, used_squares]) =
            (self.begun[column.index()], self.used[resource]);
        let all = self.count;
        let together = self.begun_cross[resource][column.index()] / all - count / all * used / all;
        let alone = (squares / all - (count / all) * (count / all))
            * (used_squares / all - (used / all) * (used / all));
        (alone > 1e-18).then(|| (together / libm::sqrt(alone)).clamp(-1.0, 1.0))
    }

    /// Returns the number of windows. The newest window counts as 1, and each older one counts less
    /// (exponential decay).
    pub(crate) fn windows(&self) -> f64 {
        self.count / self.weight
    }
}

/// Returns the index of Σ x(j) x(k) in `gram`.
const fn gram_index(j: usize, k: usize) -> usize {
    if j < k { j * ALL + k } else { k * ALL + j }
}

fn add(sum: &mut Weight, more: Weight) {
    sum.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_that_are_over_at_once_hide_none_that_lasts() {
        let mut sums = Sums::new(1, 1.0);
        assert!(sums.span() < 1e-12);
        sums.add_durations(0.001, 40.0);
        assert!((sums.span() - 0.001).abs() < 1e-9);
        sums.add_durations(1.0, 1.0);
        assert!(sums.span() > 0.9, "{}", sums.span());
    }
}
