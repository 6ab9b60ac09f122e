//! What is remembered of all short windows: sums that fade.
//!
//! Older windows count less, by half with each half-life. Instead of fading every sum in every window, what is new is
//! weighed more, and once in a while all is scaled down.

use alloc::vec;
use alloc::vec::Vec;

use crate::columns::{Column, MOST_COLUMNS};
use crate::rows::{Row, Spread};

/// Columns with the one for all others.
pub(crate) const ALL: usize = MOST_COLUMNS + 1;

/// Weight of a new window beyond which sums are scaled down.
const HEAVY: f64 = 1e100;

/// Of one way to spread requests.
#[derive(Clone, Debug)]
struct Normal {
    /// Σ x(j) x(k), `ALL` × `ALL`.
    gram: Vec<f64>,
    /// Σ x(j).
    work: Vec<f64>,
    /// By resource: Σ x(j) y.
    cross: Vec<Vec<f64>>,
}

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct Sums {
    /// What the weight of a window is multiplied by from one to the next.
    growth: f64,
    /// Of the next window.
    weight: f64,
    /// Windows.
    pub(crate) count: f64,
    /// By [`Spread`].
    normals: [Normal; Spread::ALL.len()],
    /// By resource: Σ y, Σ y².
    used: Vec<[f64; 2]>,
    /// Σ a(j), Σ a(j)² of requests that began.
    begun: Vec<[f64; 2]>,
    /// By resource: Σ a(j) y.
    begun_cross: Vec<Vec<f64>>,
}

impl Normal {
    fn new(resources: usize) -> Self {
        let cross = vec![vec![0.0; ALL]; resources];
        Self { gram: vec![0.0; ALL * ALL], work: vec![0.0; ALL], cross }
    }

    fn add(&mut self, row: &Row, spread: usize, used: &[f64], weight: f64) {
        for (j, x) in &row.work {
            let x = weight * x[spread];
            self.work[j.index()] += x;
            let line = &mut self.gram[j.index() * ALL..][..ALL];
            row.work.iter().for_each(|(k, other)| line[k.index()] += x * other[spread]);
            for (cross, y) in self.cross.iter_mut().zip(used) {
                cross[j.index()] += x * y;
            }
        }
    }

    fn fold(&mut self, from: usize, to: usize) {
        for k in 0..ALL {
            self.gram[to * ALL + k] += core::mem::take(&mut self.gram[from * ALL + k]);
        }
        for k in 0..ALL {
            self.gram[k * ALL + to] += core::mem::take(&mut self.gram[k * ALL + from]);
        }
        for sums in core::iter::once(&mut self.work).chain(&mut self.cross) {
            sums[to] += core::mem::take(&mut sums[from]);
        }
    }

    fn sums(&mut self) -> impl Iterator<Item = &mut f64> {
        self.gram.iter_mut().chain(&mut self.work).chain(self.cross.iter_mut().flatten())
    }
}

impl Sums {
    /// `fading`: what remains of a window's weight one step later.
    pub(crate) fn new(resources: usize, fading: f64) -> Self {
        Self {
            growth: 1.0 / fading,
            weight: 1.0,
            count: 0.0,
            normals: Spread::ALL.map(|_| Normal::new(resources)),
            used: vec![[0.0; 2]; resources],
            begun: vec![[0.0; 2]; ALL],
            begun_cross: vec![vec![0.0; ALL]; resources],
        }
    }

    /// A window, and what it used of each resource.
    pub(crate) fn add(&mut self, row: &Row, used: &[f64]) {
        let weight = self.weight;
        self.count += weight;
        for (spread, normal) in self.normals.iter_mut().enumerate() {
            normal.add(row, spread, used, weight);
        }
        for (j, [count]) in &row.begun {
            self.begun[j.index()][0] += weight * count;
            self.begun[j.index()][1] += weight * count * count;
        }
        for (resource, y) in used.iter().enumerate() {
            self.used[resource][0] += weight * y;
            self.used[resource][1] += weight * y * y;
            let cross = &mut self.begun_cross[resource];
            row.begun.iter().for_each(|(j, [count])| cross[j.index()] += weight * count * y);
        }
        self.pass(1);
    }

    /// So many windows go by.
    pub(crate) fn pass(&mut self, windows: u32) {
        self.weight *= libm::pow(self.growth, f64::from(windows));
        if self.weight > HEAVY {
            self.scale(1.0 / self.weight);
            self.weight = 1.0;
        }
    }

    fn scale(&mut self, by: f64) {
        self.count *= by;
        self.normals.iter_mut().flat_map(Normal::sums).for_each(|sum| *sum *= by);
        self.begun_cross.iter_mut().flatten().for_each(|sum| *sum *= by);
        self.used.iter_mut().chain(&mut self.begun).flatten().for_each(|sum| *sum *= by);
    }

    /// What was of one kind is of the others now.
    pub(crate) fn fold(&mut self, column: Column) {
        let (from, to) = (column.index(), Column::OTHER.index());
        if from == to {
            return;
        }
        self.normals.iter_mut().for_each(|normal| normal.fold(from, to));
        for sums in &mut self.begun_cross {
            sums[to] += core::mem::take(&mut sums[from]);
        }
        // Of how both came together nothing is known: what the seed's statistic says of all others is approximate.
        let [count, squares] = core::mem::take(&mut self.begun[from]);
        self.begun[to][0] += count;
        self.begun[to][1] += squares;
    }

    /// Of the fit of `y` by all columns: Σ x xᵀ and Σ x y.
    pub(crate) fn normal(&self, spread: Spread, resource: usize) -> (&[f64], &[f64]) {
        let normal = &self.normals[spread as usize];
        (&normal.gram, &normal.cross[resource])
    }

    /// Requests of this kind, in windows of today's weight.
    pub(crate) fn work(&self, column: Column) -> f64 {
        self.normals[Spread::Whole as usize].work[column.index()] / self.weight
    }

    /// Σ y, in windows of today's weight.
    pub(crate) fn used(&self, resource: usize) -> f64 {
        self.used[resource][0] / self.weight
    }

    /// Pearson's coefficient of two kinds' work.
    pub(crate) fn alike(&self, j: Column, k: Column) -> f64 {
        let whole = &self.normals[Spread::Whole as usize];
        let at = |j: Column, k: Column| whole.gram[j.index() * ALL + k.index()] / self.count;
        let mean = |j: Column| whole.work[j.index()] / self.count;
        let together = at(j, k) - mean(j) * mean(k);
        let alone = |j: Column| at(j, j) - mean(j) * mean(j);
        together / libm::sqrt(alone(j) * alone(k))
    }

    /// Of requests that began and the use of a resource: Pearson's coefficient; `None` where either never varied.
    pub(crate) fn correlation(&self, column: Column, resource: usize) -> Option<f64> {
        let ([count, squares], [used, used_squares]) =
            (self.begun[column.index()], self.used[resource]);
        let all = self.count;
        let together = self.begun_cross[resource][column.index()] / all - count / all * used / all;
        let alone = (squares / all - (count / all) * (count / all))
            * (used_squares / all - (used / all) * (used / all));
        (alone > 1e-18).then(|| (together / libm::sqrt(alone)).clamp(-1.0, 1.0))
    }

    /// Windows of today's weight that it is worth, none faded.
    pub(crate) fn windows(&self) -> f64 {
        self.count / self.weight
    }
}
