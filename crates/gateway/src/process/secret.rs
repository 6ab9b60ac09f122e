//! The key of all hashes of values that clients choose, and the engine's keys made with it.
//!
//! Clients cannot know the key, so they cannot construct values with the same hash.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::net::IpAddr;

use bywash_engine::{AddressKey, AttemptKey, SessionKey};
use siphasher::sip::SipHasher13;

/// The key of every hash of values that clients choose: 128 random bits.
#[derive(Clone, Copy)]
pub(crate) struct Secret(pub(crate) u64, pub(crate) u64);

impl Secret {
    /// Draws a new key. It comes from the operating system, through the key of a `RandomState`.
    pub(crate) fn draw() -> Self {
        Self(RandomState::new().hash_one(0_u8), RandomState::new().hash_one(1_u8))
    }

    fn hash(self, bytes: &[u8]) -> u64 {
        let mut hasher = SipHasher13::new_with_keys(self.0, self.1);
        hasher.write(bytes);
        hasher.finish()
    }

    /// Returns the engine's key for the session with this cookie value.
    pub(crate) fn session_key(self, cookie: &[u8]) -> SessionKey {
        SessionKey(self.hash(cookie))
    }

    /// Returns the engine's key for a client's address. All addresses of an IPv6 /64 have the same
    /// key.
    pub(crate) fn address_key(self, address: IpAddr) -> AddressKey {
        AddressKey(match network(address) {
            IpAddr::V4(v4) => self.hash(&v4.octets()),
            IpAddr::V6(v6) => self.hash(&v6.octets()),
        })
    }

    /// Returns the engine's key for a request that a client may repeat, as a hash of all these
    /// parts.
    pub(crate) fn attempt_key<const PARTS: usize>(self, parts: [&[u8]; PARTS]) -> AttemptKey {
        let mut hasher = self.parts_hasher();
        for part in parts {
            hasher.part(part);
        }
        AttemptKey(hasher.finish())
    }

    /// Returns a hasher of a list of parts. Keys of different kinds need different first parts.
    pub(crate) fn parts_hasher(self) -> PartsHasher {
        PartsHasher(SipHasher13::new_with_keys(self.0, self.1))
    }
}

/// A keyed hasher of a list of parts.
pub(crate) struct PartsHasher(SipHasher13);

impl PartsHasher {
    /// Adds a part. Its length goes into the hash, so that two different lists of parts never give
    /// the same bytes.
    pub(crate) fn part(&mut self, part: &[u8]) {
        self.0.write_usize(part.len());
        self.0.write(part);
    }

    pub(crate) fn finish(&self) -> u64 {
        self.0.finish()
    }
}

/// Returns the network that counts as one client: the /64 of an IPv6 address, or the IPv4 address
/// itself.
pub(crate) fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(v4) => v4.into(),
        IpAddr::V6(v6) => IpAddr::V6((v6.to_bits() >> 64 << 64).into()),
    }
}
