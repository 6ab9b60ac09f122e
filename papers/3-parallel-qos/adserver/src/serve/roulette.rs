//! The paper's roulette [paper 3.4]: an array of cumulative weights, from which a random number
//! selects one entry.

/// An array of cumulative weights: each entry is the sum of its own weight and all weights before
/// it.
#[derive(Debug)]
pub(super) struct Roulette {
    sums: Vec<u64>,
}

impl Roulette {
    pub(super) fn new(weights: impl Iterator<Item = u64>) -> Self {
        let add = |sum: &mut u64, weight: u64| {
            *sum = sum.saturating_add(weight);
            Some(*sum)
        };
        Self { sums: weights.scan(0, add).collect() }
    }

    /// Returns the sum of all weights, which is zero if there are none. Random numbers are drawn
    /// below this sum.
    pub(super) fn total(&self) -> u64 {
        self.sums.last().copied().unwrap_or(0)
    }

    /// Returns the index of the entry that `number` selects: the first entry whose cumulative
    /// weight exceeds `number`. `number` must be below the total.
    pub(super) fn entry(&self, number: u64) -> usize {
        self.sums.partition_point(|sum| *sum <= number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks the paper's example [paper 3.4]. The paper's Table II prints 12,220 for the second
    /// sum, but 6,760 + 5,440 is 12,200. The later sums in the table are right.
    #[test]
    fn the_example_of_the_seed_selects_its_second_banner() {
        let state =
            [(10_000, 3_240), (8_000, 2_560), (20_000, 4_210), (30_000, 1_250), (25_000, 6_430)];
        let owed = state.map(|(contracted, delivered)| contracted - delivered);
        assert_eq!(owed, [6_760, 5_440, 15_790, 28_750, 18_570]);
        let roulette = Roulette::new(owed.into_iter());
        assert_eq!(roulette.sums, [6_760, 12_200, 27_990, 56_740, 75_310]);
        assert_eq!(roulette.total(), 75_310);
        assert_eq!(roulette.entry(10_534), 1);
    }

    #[test]
    fn every_number_falls_into_the_entry_whose_space_it_is() {
        let roulette = Roulette::new([2, 0, 3].into_iter());
        assert_eq!([0, 1, 2, 3, 4].map(|number| roulette.entry(number)), [0, 0, 2, 2, 2]);
        assert_eq!(Roulette::new([].into_iter()).total(), 0);
    }
}
