//! The set of ranks at which requests wait.

use alloc::vec;
use alloc::vec::Vec;

/// The set of ranks at which requests wait, as bits.
#[derive(Debug)]
pub(super) struct Occupied(Vec<u64>);

impl Occupied {
    pub(super) fn none(ranks: usize) -> Self {
        Self(vec![0; ranks.div_ceil(64)])
    }

    pub(super) fn set(&mut self, rank: u32, occupied: bool) {
        let (word, bit) = (rank as usize / 64, 1_u64 << (rank % 64));
        if occupied {
            self.0[word] |= bit;
        } else {
            self.0[word] &= !bit;
        }
    }

    /// Returns the best rank at which a request waits, among the ranks from `rank` on; `None` if
    /// there is none.
    pub(super) fn from(&self, rank: u32) -> Option<u32> {
        let (first, bit) = (rank as usize / 64, rank % 64);
        let masked = |(word, bits): (usize, &u64)| {
            let bits = if word == first { bits & (u64::MAX << bit) } else { *bits };
            (bits != 0).then(|| word as u32 * 64 + bits.trailing_zeros())
        };
        self.0.iter().enumerate().skip(first).find_map(masked)
    }

    pub(super) fn worst(&self) -> Option<u32> {
        let word = self.0.iter().rposition(|word| *word != 0)?;
        Some(word as u32 * 64 + 63 - self.0[word].leading_zeros())
    }
}
