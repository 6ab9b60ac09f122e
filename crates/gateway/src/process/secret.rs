//! The key of all hashes of values that clients choose, and the engine's keys made with it.
//!
//! Clients cannot know the key, so they cannot construct collisions.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::net::IpAddr;

use bywash_engine::{AddressKey, AttemptKey, SessionKey};
use siphasher::sip::SipHasher13;

/// The key of every hash of values that clients choose.
#[derive(Clone, Copy)]
pub(crate) struct Secret(pub(crate) u64, pub(crate) u64);

impl Secret {
    /// Draws a new key. The standard library draws the keys of its own tables from the system.
    pub(crate) fn draw() -> Self {
        Self(RandomState::new().hash_one(0_u8), RandomState::new().hash_one(1_u8))
    }

    fn hash(self, bytes: &[u8]) -> u64 {
        let mut hasher = SipHasher13::new_with_keys(self.0, self.1);
        hasher.write(bytes);
        hasher.finish()
    }

    /// Returns the engine's key for a session cookie's value.
    pub(crate) fn session_key(self, cookie: &[u8]) -> SessionKey {
        SessionKey(self.hash(cookie))
    }

    /// Returns the engine's key for an address.
    pub(crate) fn address_key(self, address: IpAddr) -> AddressKey {
        AddressKey(match network(address) {
            IpAddr::V4(v4) => self.hash(&v4.octets()),
            IpAddr::V6(v6) => self.hash(&v6.octets()),
        })
    }

    /// Returns the engine's key for an attempt: of all these parts together.
    pub(crate) fn attempt_key<const PARTS: usize>(self, parts: [&[u8]; PARTS]) -> AttemptKey {
        let mut hasher = SipHasher13::new_with_keys(self.0, self.1);
        for part in parts {
            // Two lists of parts never give the same bytes.
            hasher.write_usize(part.len());
            hasher.write(part);
        }
        AttemptKey(hasher.finish())
    }
}

/// Returns the network that counts as one client: IPv6 clients own a /64.
pub(crate) fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(v4) => v4.into(),
        IpAddr::V6(v6) => IpAddr::V6((v6.to_bits() >> 64 << 64).into()),
    }
}
