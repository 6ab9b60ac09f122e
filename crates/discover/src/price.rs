//! The second stage: estimates the costs of the candidates, and tests whether they can be believed.

use alloc::vec::Vec;

use nalgebra::{DMatrix, DVector, SMatrix, SVector};
use statrs::distribution::{ContinuousCDF, StudentsT};

use crate::find::Candidate;
use crate::nnls::nnls;
use crate::ring::Window;
use crate::rows::Spread;
use crate::sums::ALL;

/// The windows to fit. Each has the work in it, and the use of a resource beyond the idle use.
pub(crate) struct Windows {
    /// The work in each window (row) by column. There is a column for each candidate, and one for
    /// all other routes that are not twins of a candidate.
    design: DMatrix<f64>,
    used: DVector<f64>,
    /// The total number of steps in the windows whose use was read.
    steps: f64,
    /// The total use in these steps, in seconds of the resource.
    whole: f64,
    /// The total work of each column over all windows, in requests.
    work: Vec<f64>,
}

/// The number of preceding windows that predict the error of a window.
const MEMORY: usize = 4;
/// The maximum sum of the coefficients by which preceding windows predict a window's error. With a
/// larger sum, little of the use would be left to explain.
const MOST_EXPLAINED: f64 = 0.8;

/// The estimated cost of one candidate and its certainty, from the given windows.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Price {
    pub(crate) cost: f64,
    /// Half the width of the 95 % confidence interval of the cost, in seconds of the resource.
    pub(crate) margin: f64,
    pub(crate) p: f64,
    /// The candidate's share of the resource's total use.
    pub(crate) share: f64,
    /// The mean number of requests of the candidate per step.
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
        let mut indices = [Some(rest); ALL];
        candidates.iter().flat_map(|one| &one.twins).for_each(|twin| indices[twin.index()] = None);
        for (index, candidate) in candidates.iter().enumerate() {
            indices[candidate.column.index()] = Some(index);
        }
        let mut design = DMatrix::zeros(windows.len(), rest + 1);
        for (t, window) in windows.iter().enumerate() {
            for (column, weight) in window.iter().flat_map(|part| part.work.all()) {
                if let Some(index) = indices[column.index()] {
                    design[(t, index)] += weight[spread as usize];
                }
            }
        }
        let steps = windows.iter().flatten().map(|part| f64::from(part.steps)).sum();
        let work = design.column_iter().map(|column| column.sum()).collect();
        Self { steps, whole: used.sum(), work, design, used }
    }

    /// Returns the cost of a request for each column, in seconds of the resource.
    fn fit(&self) -> Vec<f64> {
        let normal = self.design.transpose() * &self.design;
        let right = self.design.transpose() * &self.used;
        nnls(normal.as_slice(), right.as_slice())
    }

    fn residual(&self, costs: &[f64]) -> DVector<f64> {
        &self.used - &self.design * DVector::from_column_slice(costs)
    }

    /// Removes from each window the part of its error that the preceding windows predict (Cochrane
    /// and Orcutt, 1949). Changes nothing if they predict nothing.
    ///
    /// The errors of successive windows are correlated because the speed of a shared machine drifts
    /// slowly. This drift hides how the use depends on the mix of requests, which differs from
    /// window to window. While the resource is always busy, its use is constant, so only the mix
    /// shows what a request costs.
    ///
    /// The first windows have no predecessors, and are left out. Gaps between windows are ignored,
    /// because they are few.
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

    /// Returns Pearson's coefficient of the work on two candidates; 0 if the work on one of them
    /// never varies.
    pub(crate) fn alike(&self, j: usize, k: usize) -> f64 {
        let centred = |j: usize| {
            let column = self.design.column(j);
            column.add_scalar(-column.mean())
        };
        let (j, k) = (centred(j), centred(k));
        let norms = j.norm() * k.norm();
        if norms > 0.0 { j.dot(&k) / norms } else { 0.0 }
    }

    /// Returns the estimated costs of the candidates. All costs are zero if the windows cannot
    /// determine them.
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
        // If less was used than the resource's idle use, nothing is left to explain.
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

/// Returns the coefficients by which the preceding windows predict the error of a window (the
/// Yule-Walker equations). The first coefficient is that of the directly preceding window. Returns
/// `None` if the preceding windows predict nothing, or if there are too few windows.
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
    let explained = memory.sum();
    (explained > 0.0).then(|| memory * (MOST_EXPLAINED / explained).min(1.0))
}

/// Returns the standard errors of the costs (Newey and West, 1987), and Student's distribution with
/// their degrees of freedom. The errors of successive windows may be correlated, and may grow with
/// the load. Returns `None` if there are not more windows than columns.
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
