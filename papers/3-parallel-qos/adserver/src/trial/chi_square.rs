//! Pearson's test of goodness of fit: how far counts are from their expectations, and how often
//! chance alone takes them so far.

/// The result of a test.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fit {
    /// Σ (seen − expected)² / expected.
    pub(crate) statistic: f64,
    /// The degrees of freedom: one less than there are counts.
    pub(crate) degrees: usize,
    /// The probability of a statistic at least as large, if the expectation is right.
    pub(crate) p: f64,
}

/// Compares counts of draws with replacement with their expectations. Both must have the same sum.
#[cfg(test)]
pub(crate) fn test(expected: &[f64], seen: &[u64]) -> Fit {
    fit(statistic(expected, seen), seen.len())
}

/// Compares counts of draws without replacement with their expectations: `draws` balls of `total`
/// were taken out of an urn. These counts scatter less than with replacement, by the factor (total
/// − draws) / (total − 1) in the variance of the multivariate hypergeometric distribution.
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

/// Returns the upper regularised incomplete gamma function *Q(a, x)*: a series below its middle,
/// Lentz's continued fraction above it (W. Press et al., *Numerical Recipes*, 6.2).
fn upper(a: f64, x: f64) -> f64 {
    if x <= 0.0 || a <= 0.0 {
        return 1.0;
    }
    let scale = (a * x.ln() - x - libm::lgamma(a)).exp();
    if x < a + 1.0 { 1.0 - scale * series(a, x) } else { scale * fraction(a, x) }
}

/// The most steps, more than any test here takes. They grow as the square root of `a`.
const STEPS: u32 = 100_000;
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

    /// Critical values from tables, for 5 %, 1 % and 0.1 %. The one with many degrees of freedom is
    /// by Wilson and Hilferty.
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
