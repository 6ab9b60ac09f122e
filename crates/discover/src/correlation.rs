//! The statistic of paper 5: Pearson's coefficient of the number of requests per window and the use
//! of a resource, with its p-value [paper 5.3].
//!
//! The p-value is that of Student's test for independent windows. Windows of a web site are not
//! independent, so the p-value is far too small, as in the paper. The statistic serves to reproduce
//! the paper's table.

use statrs::distribution::{ContinuousCDF, StudentsT};

/// The statistic of one route and one resource: one line of the paper's table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Correlation {
    /// Pearson's coefficient r, from −1 to 1.
    pub coefficient: f64,
    /// The p-value: the probability of a coefficient of at least this size if there is no
    /// correlation.
    pub p: f64,
}

impl Correlation {
    /// Creates the statistic from a coefficient over `windows` windows. Returns `None` if there are
    /// too few windows.
    pub fn of(coefficient: f64, windows: f64) -> Option<Self> {
        let freedom = windows - 2.0;
        let student = StudentsT::new(0.0, 1.0, freedom).ok()?;
        let rest = 1.0 - coefficient * coefficient;
        let p = if rest > 0.0 {
            let t = coefficient.abs() * libm::sqrt(freedom / rest);
            2.0 * student.cdf(-t)
        } else {
            0.0
        };
        Some(Self { coefficient, p })
    }
}
