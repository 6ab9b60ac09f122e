//! Pearson's chi-square test of goodness of fit: how far observed counts are from their
//! expectations, and how likely such a distance is by chance.

use statrs::function::gamma::gamma_ur;

/// The result of a chi-square test.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fit {
    /// The test statistic: Σ (seen − expected)² / expected.
    pub(crate) statistic: f64,
    /// The degrees of freedom: the number of counts minus one.
    pub(crate) degrees: usize,
    /// The p-value: the probability of a statistic at least this large if the expectations are
    /// right.
    pub(crate) p: f64,
}

/// Tests counts of draws with replacement against their expectations. `expected` and `seen` must
/// have the same sum.
#[cfg(test)]
pub(crate) fn test(expected: &[f64], seen: &[u64]) -> Fit {
    fit(statistic(expected, seen), seen.len())
}

/// Tests counts of draws without replacement against their expectations. `draws` balls were taken
/// out of an urn with `total` balls. Such counts vary less than with replacement. Their variance
/// (multivariate hypergeometric distribution) is smaller by the factor (total − draws) / (total −
/// 1).
pub(crate) fn test_urn(expected: &[f64], seen: &[u64], draws: u64, total: u64) -> Fit {
    let factor = total.saturating_sub(1) as f64 / total.saturating_sub(draws).max(1) as f64;
    fit(statistic(expected, seen) * factor, seen.len())
}

fn statistic(expected: &[f64], seen: &[u64]) -> f64 {
    let terms = expected.iter().zip(seen).map(|(expected, seen)| {
        let away = *seen as f64 - expected;
        away * away / expected
    });
    terms.sum()
}

fn fit(statistic: f64, counts: usize) -> Fit {
    let degrees = counts.saturating_sub(1);
    Fit { statistic, degrees, p: p_value(degrees as f64, statistic) }
}

/// Returns the probability that a chi-square variable is at least as large as `statistic`.
fn p_value(degrees: f64, statistic: f64) -> f64 {
    // `gamma_ur` accepts positive, finite arguments only.
    if degrees <= 0.0 || statistic <= 0.0 {
        return 1.0;
    }
    if statistic == f64::INFINITY {
        return 0.0;
    }
    gamma_ur(degrees / 2.0, statistic / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks critical values from tables, for 5 %, 1 % and 0.1 %. The value for many degrees of
    /// freedom is the approximation of Wilson and Hilferty.
    #[test]
    fn likelihoods_are_those_of_the_tables() {
        for (degrees, statistic, p) in [
            (1.0, 3.841, 0.05),
            (10.0, 18.307, 0.05),
            (10.0, 29.588, 0.001),
            (100.0, 135.807, 0.01),
            (100.0, 70.065, 0.99),
            (9_999.0, 10_330.92, 0.01),
        ] {
            let found = p_value(degrees, statistic);
            assert!((found - p).abs() < 0.002 * p.max(0.05), "{degrees}: {found} for {p}");
        }
    }

    #[test]
    fn what_is_as_expected_fits_and_what_is_not_does_not() {
        assert!(test(&[50.0, 50.0], &[50, 50]).p > 0.999);
        assert!(test(&[50.0, 50.0], &[80, 20]).p < 1e-6);
        assert!(test_urn(&[50.0, 50.0], &[55, 45], 100, 110).p < test(&[50.0, 50.0], &[55, 45]).p);
    }
}
