//! The random numbers of one request.

use rand_core::Rng;
use rand_pcg::Pcg64Mcg;

/// A stream of pseudo-random numbers, which depends only on its seed.
#[derive(Debug)]
pub(crate) struct RandomStream(Pcg64Mcg);

impl RandomStream {
    pub(crate) fn seeded(seed: u64) -> Self {
        // Mix the seed into both halves of the state. The first numbers of this generator are not
        // random if nearly all bits of its state are zero.
        let seed = u128::from(seed).wrapping_mul(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835);
        let mut numbers = Pcg64Mcg::new(seed ^ (seed >> 64));
        for _ in 0..16 {
            numbers.next_u64();
        }
        Self(numbers)
    }

    /// Returns a uniformly distributed number below `end`, or zero if `end` is zero.
    ///
    /// The number is the upper half of the product of `end` and a random number. If the lower half
    /// shows that the result would be too likely, another number is drawn (D. Lemire, *Fast random
    /// integer generation in an interval*, 2019).
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        let unfair = end.wrapping_neg().checked_rem(end).unwrap_or(0);
        loop {
            let product = u128::from(self.0.next_u64()) * u128::from(end);
            if product as u64 >= unfair {
                return (product >> 64) as u64;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_below_the_end_and_reach_all_of_it() {
        let mut rng = RandomStream::seeded(1);
        let mut seen = [0; 6];
        for _ in 0..6_000 {
            seen[rng.below(6) as usize] += 1;
        }
        assert!(seen.iter().all(|count| (850..1_150).contains(count)), "{seen:?}");
        assert_eq!((rng.below(1), rng.below(0)), (0, 0));
    }
}
