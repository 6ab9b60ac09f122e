//! Hashing what is hashed already.

use core::hash::{BuildHasher, Hasher};

/// Room to make a table of keys with, for each entry that it may hold. hashbrown never allocates
/// again for a table that is at most half full: what was removed it clears up in place.
pub(crate) const SPARE: usize = 2;

/// Spreads keys that are uniform already (they are keyed hashes; only the simulator's are plain
/// numbers) with one multiplication. What an attacker may choose is hashed with a secret key
/// before it comes here.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct KeyHasher;

/// See [`KeyHasher`].
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
