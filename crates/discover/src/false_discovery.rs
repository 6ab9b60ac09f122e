//! Selects which results of many simultaneous tests can be believed.
//!
//! Source: Benjamini and Hochberg (1995). The expected fraction of wrong results among the believed
//! ones is at most `q`.

use alloc::vec::Vec;

/// Returns the largest p-value of `listed` that can be believed, or -1 if there is none. `tests` is
/// the total number of tests, and `q` the maximum expected fraction of wrong results. Tests that
/// are not listed are not believed.
pub(crate) fn threshold(listed: &[f64], tests: usize, q: f64) -> f64 {
    let mut sorted: Vec<f64> = listed.to_vec();
    sorted.sort_by(f64::total_cmp);
    let most = |(rank, p): (usize, &f64)| {
        let bound = q * (rank + 1) as f64 / tests as f64;
        (*p <= bound).then_some(*p)
    };
    sorted.iter().enumerate().filter_map(most).next_back().unwrap_or(-1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_the_paper_rejects_four_of_fifteen() {
        // The example in Benjamini and Hochberg (1995), section 4.2.
        let p = [
            0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240, 0.4262,
            0.5719, 0.6528, 0.7590, 1.0,
        ];
        assert!((threshold(&p, 15, 0.05) - 0.0095).abs() < 1e-12);
        assert!(threshold(&[0.2, 0.9], 15, 0.05) < 0.0);
    }
}
