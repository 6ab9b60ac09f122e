//! The key of a watch. The kernel and signals return the key with each event.

use std::os::fd::RawFd;

/// The key of a watch: the number of its descriptor, and its generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    pub(crate) fd: RawFd,
    pub(crate) generation: u32,
}

/// Converts the key to the value of a signal. The descriptor is where C has `sival_int`.
impl From<Key> for u64 {
    fn from(key: Key) -> u64 {
        let mut bytes = [0; 8];
        bytes[..4].copy_from_slice(&key.fd.to_ne_bytes());
        bytes[4..].copy_from_slice(&key.generation.to_ne_bytes());
        u64::from_ne_bytes(bytes)
    }
}

impl From<u64> for Key {
    fn from(value: u64) -> Key {
        let [a, b, c, d, generation @ ..] = value.to_ne_bytes();
        let fd = RawFd::from_ne_bytes([a, b, c, d]);
        Key { fd, generation: u32::from_ne_bytes(generation) }
    }
}
