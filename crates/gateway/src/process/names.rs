//! Generates the names of requests. They are unique in one process, and no name reveals another.
//!
//! The name of a request stands in error bodies and in header fields for the application. If it
//! were a counter, every client could see how many requests the site has had between two of its
//! own, and could predict later names. So the counter is encrypted: a Feistel network of four
//! rounds over `SipHash` is a pseudorandom permutation of 64 bits (Luby and Rackoff 1988). A
//! permutation never gives two counts the same name.

use std::hash::Hasher;
use std::sync::atomic::{AtomicU64, Ordering};

use siphasher::sip::SipHasher13;

use crate::process::secret::Secret;

const ROUNDS: u32 = 4;

pub(crate) struct Names {
    count: AtomicU64,
    /// The key, which belongs to this process alone. With the key of an earlier process, its names
    /// would repeat.
    key: Secret,
}

impl Names {
    pub(crate) fn new() -> Self {
        Self { count: AtomicU64::new(0), key: Secret::draw() }
    }

    /// Returns a name that no earlier request of this process has had.
    pub(crate) fn next(&self) -> u64 {
        permuted(self.key, self.count.fetch_add(1, Ordering::Relaxed))
    }
}

fn permuted(key: Secret, number: u64) -> u64 {
    let (mut left, mut right) = ((number >> 32) as u32, number as u32);
    for round in 0..ROUNDS {
        (left, right) = (right, left ^ half(key, round, right));
    }
    (u64::from(left) << 32) | u64::from(right)
}

fn half(Secret(k0, k1): Secret, round: u32, half: u32) -> u32 {
    let mut hasher = SipHasher13::new_with_keys(k0, k1);
    hasher.write_u64((u64::from(round) << 32) | u64::from(half));
    hasher.finish() as u32
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    fn restored(key: Secret, name: u64) -> u64 {
        let (mut left, mut right) = ((name >> 32) as u32, name as u32);
        for round in (0..ROUNDS).rev() {
            (left, right) = (right ^ half(key, round, left), left);
        }
        (u64::from(left) << 32) | u64::from(right)
    }

    proptest! {
        #[test]
        fn no_two_counts_have_one_name(k0: u64, k1: u64, number: u64) {
            let key = Secret(k0, k1);
            prop_assert_eq!(restored(key, permuted(key, number)), number);
        }
    }

    /// A plain counter would have one difference between successive names, and a counter mixed with
    /// a constant would have only a few.
    #[test]
    fn names_in_a_row_have_nothing_in_common() {
        let names = Names::new();
        let drawn: Vec<u64> = (0..1000).map(|_| names.next()).collect();
        let differ: HashSet<u64> =
            drawn.windows(2).map(|pair| pair[1].wrapping_sub(pair[0])).collect();
        let mixed: HashSet<u64> = drawn.windows(2).map(|pair| pair[0] ^ pair[1]).collect();
        assert_eq!((differ.len(), mixed.len()), (999, 999));
        let ones: u32 = drawn.iter().map(|name| name.count_ones()).sum();
        assert!((31_000..33_000).contains(&ones), "{ones}");
    }

    #[test]
    fn another_process_has_other_names() {
        assert_ne!(Names::new().next(), Names::new().next());
    }
}
