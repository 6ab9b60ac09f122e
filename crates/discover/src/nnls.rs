//! Least squares with non-negative costs.
//!
//! The algorithm is Lawson and Hanson's active set (1974) over the normal equations, in the form of
//! Bro and de Jong (1997). At first all columns are left out. They enter one by one while that
//! improves the fit. A column whose cost would become negative is left out again.

use alloc::vec;
use alloc::vec::Vec;

use nalgebra::{DMatrix, DVector};

/// The amount that is added to the diagonal of the matrix, as a fraction of its largest entry. It
/// keeps the equations solvable when a column is the sum of other columns.
const RIDGE: f64 = 1e-9;
/// The maximum number of steps of the iteration per column. After that number, rounding prevents a
/// better fit.
const STEPS: usize = 3;

/// Returns the `x ≥ 0` that minimises ½ xᵀ G x − bᵀ x. `gram` is G, a symmetric matrix of `b.len()`
/// × `b.len()`.
pub(crate) fn nnls(gram: &[f64], b: &[f64]) -> Vec<f64> {
    let n = b.len();
    let mut x = vec![0.0; n];
    let mut passive: Vec<usize> = Vec::new();
    let tolerance = 1e-10 * b.iter().fold(0.0_f64, |most, b| most.max(b.abs()));
    for _ in 0..STEPS * n {
        let gain = |j: usize| b[j] - passive.iter().map(|k| gram[j * n + k] * x[*k]).sum::<f64>();
        let is_out = |j: &usize| gram[j * n + j] > 0.0 && !passive.contains(j);
        let best = (0..n).filter(is_out).map(|j| (j, gain(j))).max_by(|a, b| a.1.total_cmp(&b.1));
        let Some((enters, _)) = best.filter(|(_, gain)| *gain > tolerance) else { break };
        passive.push(enters);
        if !settle(gram, b, &mut x, &mut passive) {
            break;
        }
    }
    x
}

/// Fits the passive columns (those whose cost may be positive), and removes those whose cost
/// becomes zero. Returns `false` if they cannot be fitted.
fn settle(gram: &[f64], b: &[f64], x: &mut [f64], passive: &mut Vec<usize>) -> bool {
    while !passive.is_empty() {
        let Some(fit) = solve(gram, b, passive) else {
            passive.pop().into_iter().for_each(|j| x[j] = 0.0);
            return false;
        };
        // The fraction of the way to the fit after which an entry of `x` becomes negative.
        let step = |(at, j): (usize, &usize)| (fit[at] <= 0.0).then(|| x[*j] / (x[*j] - fit[at]));
        let steps = passive.iter().enumerate().filter_map(step);
        let least =
            steps.fold(None, |least: Option<f64>, step| Some(least.map_or(step, |l| l.min(step))));
        let Some(least) = least else {
            passive.iter().zip(fit.iter()).for_each(|(j, fit)| x[*j] = *fit);
            return true;
        };
        let least = if least.is_finite() { least } else { 0.0 };
        for (at, j) in passive.iter().enumerate() {
            x[*j] += least * (fit[at] - x[*j]);
        }
        let mut out = |at: usize, j: usize| {
            let is_out =
                fit[at] <= 0.0 && x[j] <= 1e-12 * x.iter().fold(1e-300, |m: f64, x| m.max(*x));
            if is_out {
                x[j] = 0.0;
            }
            !is_out
        };
        let mut at = 0;
        passive.retain(|j| {
            at += 1;
            out(at - 1, *j)
        });
    }
    true
}

/// Returns the least-squares solution for these columns alone; `None` if the equations cannot be
/// solved.
fn solve(gram: &[f64], b: &[f64], columns: &[usize]) -> Option<DVector<f64>> {
    let (n, k) = (b.len(), columns.len());
    let largest = columns.iter().map(|j| gram[j * n + j]).fold(0.0, f64::max);
    let at = |row: usize, column: usize| {
        let ridge = if row == column { RIDGE * largest } else { 0.0 };
        gram[columns[row] * n + columns[column]] + ridge
    };
    let matrix = DMatrix::from_fn(k, k, at);
    let right = DVector::from_fn(k, |row, _| b[columns[row]]);
    matrix.cholesky().map(|factors| factors.solve(&right))
}
