//! A hasher for keys that are themselves hashes.

use core::hash::{BuildHasher, Hasher};

/// The size of a new table of keys, as a multiple of its maximum number of entries. hashbrown
/// cleans up removed entries in place in a table that is at most half full, so such a table never
/// allocates again.
pub(crate) const SPARE: usize = 2;

/// A hasher for keys that are uniform already, which it spreads with one multiplication.
///
/// The gateway's keys are keyed hashes. Only the simulator's keys are plain numbers. Input that an
/// attacker may choose is hashed with a secret key before it reaches this hasher.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct KeyHasher;

/// The state of a [`KeyHasher`].
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct KeyHash(u64);

impl BuildHasher for KeyHasher {
    type Hasher = KeyHash;

    fn build_hasher(&self) -> KeyHash {
        KeyHash::default()
    }
}

impl Hasher for KeyHash {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, value: u64) {
        let mixed = (self.0 ^ value).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        self.0 = mixed ^ (mixed >> 29);
    }

    fn write_isize(&mut self, value: isize) {
        self.write_u64(value as u64);
    }
}
