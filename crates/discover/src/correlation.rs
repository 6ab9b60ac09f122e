//! The seed's statistic: Pearson's coefficient of requests a window and use of a resource, and its p-value [seed 5.3].
//!
//! The p-value is that of Student's test for windows that have nothing to do with each other, which windows of a web
//! site have not: it is far too small, as the seed's was. It is there to reproduce the seed's table.

use statrs::distribution::{ContinuousCDF, StudentsT};

/// What the seed's table has in a line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Correlation {
    /// Pearson's r, −1 to 1.
    pub coefficient: f64,
    /// How probable so much is where there is no correlation.
    pub p: f64,
}

impl Correlation {
    /// Of r, over so many windows.
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
