//! The second stage: what the candidates cost, and whether that may be believed.

use alloc::vec::Vec;

use nalgebra::{DMatrix, DVector};
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
}

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
        Self { design, used, steps }
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
    pub(crate) fn prices(&self) -> Vec<Price> {
        let costs = self.fit();
        let active: Vec<usize> = (0..costs.len()).filter(|j| costs[*j] > 0.0).collect();
        let candidates = costs.len() - 1;
        let rate = |j| self.design.column(j).sum() / self.steps;
        let price = |j| Price { p: 1.0, rate: rate(j), ..Price::default() };
        let mut prices: Vec<Price> = (0..candidates).map(price).collect();
        let errors = errors(&self.design.select_columns(&active), &self.residual(&costs));
        let Some((errors, student)) = errors else { return prices };
        let quantile = student.inverse_cdf(0.975);
        for (j, error) in active.into_iter().zip(errors).filter(|(j, _)| *j < candidates) {
            let (cost, price) = (costs[j], &mut prices[j]);
            price.cost = cost;
            price.margin = quantile * error;
            price.p = student.cdf(-cost / error);
            price.share = cost * price.rate * self.steps / self.used.sum();
        }
        prices
    }
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
