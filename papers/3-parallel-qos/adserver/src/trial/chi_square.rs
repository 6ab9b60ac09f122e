//! Pearson's chi-square test of goodness of fit: how far counts are from their expectations, and
//! how likely such a distance is by chance.

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

/// Tests counts of draws with replacement against their expectations. Both slices must have the
/// same sum.
#[cfg(test)]
pub(crate) fn test(expected: &[f64], seen: &[u64]) -> Fit {
    fit(statistic(expected, seen), seen.len())
}

/// Tests counts of draws without replacement against their expectations. `draws` balls were taken
/// out of an urn with `total` balls. Such counts vary less than with replacement: their variance
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
    Fit { statistic, degrees, p: upper(degrees as f64 / 2.0, statistic / 2.0) }
}

/// Returns the upper regularised incomplete gamma function *Q(a, x)*. It uses a series for small
/// `x` and Lentz's continued fraction for large `x` (W. Press et al., *Numerical Recipes*, 6.2).
fn upper(a: f64, x: f64) -> f64 {
    if x <= 0.0 || a <= 0.0 {
        return 1.0;
    }
    let scale = (a * x.ln() - x - libm::lgamma(a)).exp();
    if x < a + 1.0 { 1.0 - scale * series(a, x) } else { scale * fraction(a, x) }
}

/// The maximum number of steps of a series or fraction, more than any test here needs. The needed
/// steps grow with the square root of `a`.
const STEPS: u32 = 100_000;
/// The relative size of a step below which a series or fraction has converged.
const CLOSE: f64 = 1e-14;

fn series(a: f64, x: f64) -> f64 {
    let (mut term, mut sum) = (1.0 / a, 1.0 / a);
    for step in 1..STEPS {
        term *= x / (a + f64::from(step));
        sum += term;
        if term < sum * CLOSE {
            break;
        }
    }
    sum
}

fn fraction(a: f64, x: f64) -> f64 {
    const TINY: f64 = 1e-300;
    let away = |value: f64| if value.abs() < TINY { TINY } else { value };
    let mut odd = x + 1.0 - a;
    let (mut above, mut below) = (1.0 / TINY, 1.0 / away(odd));
    let mut product = below;
    for step in 1..STEPS {
        let step = f64::from(step);
        let numerator = -step * (step - a);
        odd += 2.0;
        below = 1.0 / away(numerator * below + odd);
        above = away(odd + numerator / above);
        product *= below * above;
        if (below * above - 1.0).abs() < CLOSE {
            break;
        }
    }
    product
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
            let found = upper(degrees / 2.0, statistic / 2.0);
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
