//! Pseudo-random numbers from a seed that a failing test can print.

/// A splitmix64 generator, for which every seed is good.
#[derive(Debug)]
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Returns a number from 0 to `count` − 1.
    pub(crate) const fn below(&mut self, count: u64) -> u64 {
        self.next() % count
    }

    /// Returns a fraction from 0 to 1.
    pub(crate) fn share(&mut self) -> f64 {
        self.next() as f64 / u64::MAX as f64
    }

    /// Returns true with a probability of `chance` percent.
    pub(crate) const fn percent(&mut self, chance: u64) -> bool {
        self.below(100) < chance
    }

    pub(crate) fn pick<T: Copy>(&mut self, from: &[T]) -> Option<T> {
        (!from.is_empty()).then(|| from[self.below(from.len() as u64) as usize])
    }
}
