//! The second stage: what the candidates cost, and whether that may be believed.

use alloc::vec::Vec;

use nalgebra::{DMatrix, DVector, SMatrix, SVector};
use statrs::distribution::{ContinuousCDF, StudentsT};

use crate::find::Candidate;
use crate::nnls::nnls;
use crate::ring::Window;
use crate::rows::Spread;
use crate::sums::ALL;

/// Windows to fit, what each used of a resource beyond its idle use, and what was worked on in it.
pub(crate) struct Windows {
    /// A column for each candidate, and one for all that are neither candidates nor twins of one.
    design: DMatrix<f64>,
    used: DVector<f64>,
    /// Steps of all that were read.
    steps: f64,
    /// What was used in them.
    whole: f64,
    /// What was worked on of each column.
    work: Vec<f64>,
}

/// Windows before one that say how it errs.
const MEMORY: usize = 4;
/// How much they say together, at most. With more, little of what was used would be left.
const MOST_SAID: f64 = 0.8;

/// Of one candidate over the windows.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Price {
    pub(crate) cost: f64,
    /// Half of the interval.
    pub(crate) margin: f64,
    pub(crate) p: f64,
    /// Of all that was used.
    pub(crate) share: f64,
    /// Requests in a step.
    pub(crate) rate: f64,
}

impl Windows {
    pub(crate) fn new(
        windows: &[Vec<&Window>],
        candidates: &[Candidate],
        spread: Spread,
        resource: usize,
        idle: f64,
    ) -> Self {
        let used = |window: &Vec<&Window>| {
            window
                .iter()
                .map(|part| part.used[resource] - idle * f64::from(part.steps))
                .sum::<f64>()
        };
        let used = DVector::from_iterator(windows.len(), windows.iter().map(used));
        let rest = candidates.len();
        let mut places = [Some(rest); ALL];
        candidates.iter().flat_map(|one| &one.twins).for_each(|twin| places[twin.index()] = None);
        for (place, candidate) in candidates.iter().enumerate() {
            places[candidate.column.index()] = Some(place);
        }
        let mut design = DMatrix::zeros(windows.len(), rest + 1);
        for (t, window) in windows.iter().enumerate() {
            for (column, weight) in window.iter().flat_map(|part| part.work.all()) {
                if let Some(place) = places[column.index()] {
                    design[(t, place)] += weight[spread as usize];
                }
            }
        }
        let steps = windows.iter().flatten().map(|part| f64::from(part.steps)).sum();
        let work = design.column_iter().map(|column| column.sum()).collect();
        Self { steps, whole: used.sum(), work, design, used }
    }

    /// Costs of all columns.
    fn fit(&self) -> Vec<f64> {
        let normal = self.design.transpose() * &self.design;
        let right = self.design.transpose() * &self.used;
        nnls(normal.as_slice(), right.as_slice())
    }

    fn residual(&self, costs: &[f64]) -> DVector<f64> {
        &self.used - &self.design * DVector::from_column_slice(costs)
    }

    /// Each window less what the ones before it say of how it errs (Cochrane and Orcutt, 1949), as far as windows err alike: how
    /// fast a machine is that others use wanders slowly, and that drowns the mix of requests, which differs from window
    /// to window. Where all is busy the mix is all there is. (The first windows have none before them, and those on both sides of a
    /// gap are few.)
    fn whitened(self) -> Self {
        let Some(memory) = memory(&self.residual(&self.fit())) else { return self };
        let left = self.used.len() - MEMORY;
        let mut design = self.design.rows(MEMORY, left).into_owned();
        let mut used = self.used.rows(MEMORY, left).into_owned();
        for (before, kept) in memory.iter().enumerate() {
            let from = MEMORY - 1 - before;
            design -= self.design.rows(from, left) * *kept;
            used -= self.used.rows(from, left) * *kept;
        }
        Self { design, used, ..self }
    }

    /// How alike the work on two candidates is: Pearson's coefficient, 0 where one is always the same.
    pub(crate) fn alike(&self, j: usize, k: usize) -> f64 {
        let centred = |j: usize| {
            let column = self.design.column(j);
            column.add_scalar(-column.mean())
        };
        let (j, k) = (centred(j), centred(k));
        let norms = j.norm() * k.norm();
        if norms > 0.0 { j.dot(&k) / norms } else { 0.0 }
    }

    /// The candidates' prices.
    pub(crate) fn prices(self) -> Vec<Price> {
        self.whitened().fitted()
    }

    fn fitted(&self) -> Vec<Price> {
        let costs = self.fit();
        let active: Vec<usize> = (0..costs.len()).filter(|j| costs[*j] > 0.0).collect();
        let candidates = costs.len() - 1;
        let rate = |j: usize| self.work[j] / self.steps;
        let price = |j| Price { p: 1.0, rate: rate(j), ..Price::default() };
        let mut prices: Vec<Price> = (0..candidates).map(price).collect();
        let errors = errors(&self.design.select_columns(&active), &self.residual(&costs));
        // Where less was used than the resource uses by itself there is nothing to explain.
        let Some((errors, student)) = errors.filter(|_| self.whole > 0.0) else { return prices };
        let quantile = student.inverse_cdf(0.975);
        let explained: f64 = costs.iter().zip(&self.work).map(|(cost, work)| cost * work).sum();
        let level = self.whole / explained;
        for (j, error) in active.into_iter().zip(errors).filter(|(j, _)| *j < candidates) {
            let (cost, price) = (costs[j], &mut prices[j]);
            price.cost = cost * level;
            price.margin = quantile * error * level;
            price.p = student.cdf(-cost / error);
            price.share = cost * self.work[j] / explained;
        }
        prices
    }
}

/// What the windows before one, the last first, say of how it errs: Yule and Walker's equations. `None` where they say nothing, or there are few.
fn memory(residual: &DVector<f64>) -> Option<SVector<f64, MEMORY>> {
    let windows = residual.len();
    if windows <= 2 * MEMORY {
        return None;
    }
    let alike =
        |lag: usize| residual.rows(lag, windows - lag).dot(&residual.rows(0, windows - lag));
    let alike: [f64; MEMORY + 1] = core::array::from_fn(alike);
    let among = SMatrix::<f64, MEMORY, MEMORY>::from_fn(|i, j| alike[i.abs_diff(j)]);
    let memory = among.lu().solve(&SVector::from_fn(|lag, _| alike[lag + 1]))?;
    let said = memory.sum();
    (said > 0.0).then(|| memory * (MOST_SAID / said).min(1.0))
}

/// Newey and West's (1987) standard errors: windows that follow each other may err alike, and by more when there is more
/// to do. With Student's law of their degrees of freedom; `None` if there are not more windows than columns.
fn errors(design: &DMatrix<f64>, residual: &DVector<f64>) -> Option<(Vec<f64>, StudentsT)> {
    let (windows, columns) = design.shape();
    let freedom = windows.checked_sub(columns).filter(|freedom| *freedom > 0)? as f64;
    let bread = (design.transpose() * design).try_inverse()?;
    let scores = DMatrix::from_fn(windows, columns, |t, j| design[(t, j)] * residual[t]);
    let lags = libm::floor(4.0 * libm::pow(windows as f64 / 100.0, 2.0 / 9.0)) as usize;
    let mut meat = scores.transpose() * &scores;
    for lag in 1..=lags.min(windows - 1) {
        let weight = 1.0 - lag as f64 / (lags + 1) as f64;
        let (early, late) = (scores.rows(0, windows - lag), scores.rows(lag, windows - lag));
        let across = late.transpose() * early;
        meat += (&across + across.transpose()) * weight;
    }
    let covariance = &bread * meat * &bread * (windows as f64 / freedom);
    let errors = covariance.diagonal().map(|variance| libm::sqrt(variance.max(0.0)));
    Some((errors.as_slice().to_vec(), StudentsT::new(0.0, 1.0, freedom).ok()?))
}
