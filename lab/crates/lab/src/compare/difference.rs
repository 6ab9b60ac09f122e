//! The difference between two result rows in one figure, and its standard error.

use bywash_scenario::{ResultRow, SeedFigures, standard_error};

/// The number of standard errors that a difference must exceed to count as larger than chance. The
/// entries are for 1, 2, … degrees of freedom. If the true difference is zero, a measured one
/// exceeds this number once in twenty times. The number is higher for few degrees of freedom,
/// because a standard error that is estimated from few seeds may be far too small. Source:
/// Student's t, the 97.5 % quantile.
const LARGE: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
    2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
    2.052, 2.048, 2.045, 2.042,
];
/// The number of standard errors, as in [`LARGE`], for more degrees of freedom than [`LARGE`] has.
/// It is the 97.5 % quantile of the normal distribution.
const LARGE_OF_MANY: f64 = 1.960;

/// The precision of a difference, as a standard error with its degrees of freedom.
#[derive(Clone, Copy, Debug)]
pub(super) struct Error {
    /// The standard error of the difference, in the unit of the difference.
    pub(super) standard: f64,
    /// The degrees of freedom of the estimate of `standard`.
    degrees: usize,
}

impl Error {
    /// Returns the absolute difference that chance alone exceeds once in twenty comparisons.
    fn large(self) -> f64 {
        let index = self.degrees.saturating_sub(1);
        self.standard * LARGE.get(index).copied().unwrap_or(LARGE_OF_MANY)
    }
}

/// Two result rows for the same load, to be compared.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pair<'a> {
    pub(super) left: &'a ResultRow,
    pub(super) right: &'a ResultRow,
    pub(super) same_seeds: bool,
}

/// A figure of a result row, as a fraction.
#[derive(Clone, Copy, Debug)]
pub(super) struct Measure {
    pub(super) key: &'static str,
    pub(super) name: &'static str,
    of_cell: fn(&ResultRow) -> f64,
    of_seed: fn(&SeedFigures) -> f64,
}

const fn of_base(count: u64, cell: &ResultRow) -> f64 {
    let base = cell.generated.saturating_add(cell.not_generated);
    if base == 0 { 0.0 } else { count as f64 / base as f64 }
}

const MEASURES: [Measure; 5] = [
    Measure {
        key: "completed",
        name: "completed",
        of_cell: |cell| of_base(cell.completed, cell),
        of_seed: |seed| seed.completed,
    },
    Measure {
        key: "timed_out",
        name: "timed out",
        of_cell: |cell| of_base(cell.timed_out, cell),
        of_seed: |seed| seed.timed_out,
    },
    Measure {
        key: "dropped",
        name: "dropped",
        of_cell: |cell| of_base(cell.dropped, cell),
        of_seed: |seed| seed.dropped,
    },
    Measure {
        key: "useful_work",
        name: "useful work",
        of_cell: |cell| cell.useful_work,
        of_seed: |seed| seed.useful_work,
    },
    Measure {
        key: "revenue_share",
        name: "revenue",
        of_cell: |cell| cell.revenue_share,
        of_seed: |seed| seed.revenue_share,
    },
];

/// One figure of two result rows that are compared: both values, in percent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Difference {
    pub(super) measure: Measure,
    pub(super) left: f64,
    pub(super) right: f64,
    /// The standard error of the difference, in percentage points. `None` if a side has only one
    /// seed, or no figures per seed.
    pub(super) error: Option<Error>,
}

/// The judgement of whether a difference may be due to chance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Significance {
    /// Both values are the same.
    Same,
    /// The difference may be chance.
    Within,
    /// The difference is larger than chance.
    Larger,
    /// There is no estimate of the error.
    Unknown,
}

impl Significance {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Same => "same",
            Self::Within => "chance",
            Self::Larger => "larger",
            Self::Unknown => "unknown",
        }
    }
}

impl Difference {
    /// Returns the right value minus the left one, in percentage points.
    pub(super) fn by(&self) -> f64 {
        self.right - self.left
    }

    pub(super) fn significance(&self) -> Significance {
        match self.error {
            _ if self.left.total_cmp(&self.right).is_eq() => Significance::Same,
            None => Significance::Unknown,
            Some(error) if self.by().abs() > error.large() => Significance::Larger,
            Some(_) => Significance::Within,
        }
    }
}

impl Pair<'_> {
    /// Returns the name of the policy, or both names if the policies differ.
    pub(super) fn name(&self) -> String {
        let (left, right) = (&self.left.policy, &self.right.policy);
        if left == right { left.clone() } else { format!("{left} → {right}") }
    }

    /// Returns whether both sides had the same visitors, seed by seed.
    pub(super) fn is_paired(&self) -> bool {
        let (left, right) = (&self.left.per_seed, &self.right.per_seed);
        let planned = |(a, b): (&SeedFigures, &SeedFigures)| {
            a.requests_planned == b.requests_planned && a.orders_planned == b.orders_planned
        };
        self.same_seeds && left.len() == right.len() && left.iter().zip(right).all(planned)
    }

    pub(super) fn differences(&self) -> impl Iterator<Item = Difference> {
        MEASURES.into_iter().map(|measure| Difference {
            measure,
            left: 100.0 * (measure.of_cell)(self.left),
            right: 100.0 * (measure.of_cell)(self.right),
            error: self.error(measure.of_seed),
        })
    }

    /// Returns the standard error of a figure's difference, in percentage points. Rows with the
    /// same visitors are compared seed by seed. Returns `None` without an estimate.
    fn error(&self, of: fn(&SeedFigures) -> f64) -> Option<Error> {
        let percent = |seed: &SeedFigures| 100.0 * of(seed);
        let values = |cell: &ResultRow| cell.per_seed.iter().map(percent).collect::<Vec<f64>>();
        let (left, right) = (values(self.left), values(self.right));
        if self.is_paired() {
            let differences: Vec<f64> = left.iter().zip(&right).map(|(a, b)| b - a).collect();
            let standard = standard_error(&differences)?;
            return Some(Error { standard, degrees: differences.len() - 1 });
        }
        let standard = standard_error(&left)?.hypot(standard_error(&right)?);
        Some(Error { standard, degrees: left.len() + right.len() - 2 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a result row whose seeds have these shares of useful work, and `planned` planned
    /// orders each.
    fn cell(useful: &[f64], planned: u64) -> ResultRow {
        let seed = |useful_work: &f64| {
            format!(
                "{{\"completed\":0,\"timed_out\":0,\"dropped\":0,\"useful_work\":{useful_work},\
                 \"revenue_share\":0,\"requests_planned\":9,\"orders_planned\":{planned}}}"
            )
        };
        let seeds: Vec<String> = useful.iter().map(seed).collect();
        let mean = useful.iter().sum::<f64>() / useful.len() as f64;
        serde_json::from_str(&format!(
            "{{\"policy\":\"p\",\"rho\":1,\"closes\":\"hidden\",\"generated\":0,\"completed\":0,\
             \"timed_out\":0,\"dropped\":0,\"not_generated\":0,\"useful_work\":{mean},\
             \"wasted_work\":0,\"revenue_share\":0,\"orders\":0,\"orders_planned\":0,\
             \"orders_possible\":0,\"classes\":[],\"per_seed\":[{}]}}",
            seeds.join(",")
        ))
        .unwrap()
    }

    fn useful(left: &ResultRow, right: &ResultRow) -> Difference {
        let pair = Pair { left, right, same_seeds: true };
        pair.differences().find(|one| one.measure.key == "useful_work").unwrap()
    }

    #[test]
    fn the_same_visitors_are_compared_seed_by_seed() {
        // The seeds differ far more from each other than the policies do, and the policies differ
        // in the same direction with each seed.
        let (left, right) = (cell(&[0.5, 0.7, 0.9], 10), cell(&[0.52, 0.71, 0.93], 10));
        let difference = useful(&left, &right);
        // The differences are 2, 1 and 3 points: mean 2, standard deviation 1, divided by √3.
        assert!((difference.by() - 2.0).abs() < 1e-9);
        let error = difference.error.unwrap();
        assert!((error.standard - 1.0 / 3.0_f64.sqrt()).abs() < 1e-9);
        assert_eq!(error.degrees, 2);
    }

    #[test]
    fn few_seeds_must_differ_by_more_standard_errors_than_many() {
        // In both cases the mean is 2 points, about 3.5 standard errors.
        let by = |points: &[f64]| {
            let right: Vec<f64> = points.iter().map(|by| 0.5 + by / 100.0).collect();
            let (left, right) = (cell(&vec![0.5; points.len()], 10), cell(&right, 10));
            let difference = useful(&left, &right);
            let errors = difference.by() / difference.error.unwrap().standard;
            assert!((3.4..3.7).contains(&errors), "{errors}");
            difference.significance()
        };
        assert_eq!(by(&[2.0, 1.0, 3.0]), Significance::Within, "not above 4.3 of them");
        assert_eq!(by(&[2.0, 0.6, 3.4, 1.0, 3.0]), Significance::Larger, "above 2.8");
    }

    #[test]
    fn other_visitors_are_compared_with_both_errors() {
        let (left, right) = (cell(&[0.5, 0.7, 0.9], 10), cell(&[0.52, 0.71, 0.93], 11));
        let difference = useful(&left, &right);
        let error = difference.error.unwrap();
        assert!(error.standard > 10.0 && error.degrees == 4, "{error:?}");
        assert_eq!(difference.significance(), Significance::Within);
    }

    #[test]
    fn of_one_seed_nobody_can_say_and_the_same_is_the_same() {
        let (left, right) = (cell(&[0.5], 10), cell(&[0.6], 10));
        assert_eq!(useful(&left, &right).significance(), Significance::Unknown);
        assert_eq!(useful(&left, &left).significance(), Significance::Same);
    }
}
