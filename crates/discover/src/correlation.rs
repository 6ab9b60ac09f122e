//! The statistic of the paper: Pearson's coefficient of requests per window and use of a resource,
//! and its p-value [paper 5.3].
//!
//! The p-value is that of Student's test for independent windows. Windows of a web site are not
//! independent, so the p-value is far too small, as in the paper. It is here to reproduce the
//! paper's table.

use statrs::distribution::{ContinuousCDF, StudentsT};

/// A line of the paper's table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Correlation {
    /// Pearson's r, −1 to 1.
    pub coefficient: f64,
    /// The probability of so large a coefficient without any correlation.
    pub p: f64,
}

impl Correlation {
    /// Returns the p-value of a coefficient over `windows` windows.
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
