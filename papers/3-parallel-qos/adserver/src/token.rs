//! Tokens in the addresses of clicks, each of which identifies one placement of a banner.
//!
//! A token states which banner was placed in which slot. It is signed with a key that only the
//! database has (SipHash-2-4 with 128 bits: J.-P. Aumasson and D. Bernstein, 2012). Therefore a
//! client can neither guess nor change a token. A placement needs no write to the database: only
//! clicks are stored.

use std::fmt::{self, Write};
use std::hash::Hasher;

use siphasher::sip128::{Hasher128, SipHasher24};

use crate::ids::{BannerId, SlotId};

/// The placement of a banner on one page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Placement {
    /// The number of the server's start in which the placement was made. Boot and serial number
    /// together are unique.
    pub(crate) boot: u32,
    pub(crate) serial: u64,
    pub(crate) banner: BannerId,
    /// The slot, or `None` if the request named no slots.
    pub(crate) slot: Option<SlotId>,
}

/// The secret key that signs tokens.
#[derive(Clone)]
pub(crate) struct Key([u8; 16]);

/// The number of hexadecimal digits of each part of a token: boot number, serial number, banner,
/// slot, signature.
const DIGITS: [usize; 5] = [8, 16, 8, 8, 32];

impl Key {
    pub(crate) const LENGTH: usize = 16;

    pub(crate) const fn new(bytes: [u8; Self::LENGTH]) -> Self {
        Self(bytes)
    }

    /// Returns the token of `placement`: 72 hexadecimal digits.
    pub(crate) fn sign(&self, placement: &Placement) -> String {
        let mut token = plain(placement);
        let signature = self.signature(&token);
        // Writing to a string cannot fail.
        let _ = write!(token, "{signature:032x}");
        token
    }

    /// Returns the placement of a token, or `None` if this key has not signed the token.
    pub(crate) fn read(&self, token: &str) -> Option<Placement> {
        let is_hex = token.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        if !is_hex || token.len() != DIGITS.iter().sum::<usize>() {
            return None;
        }
        let mut rest = token;
        let parts = DIGITS.map(|digits| {
            let (part, after) = rest.split_at(digits);
            rest = after;
            u128::from_str_radix(part, 16).unwrap_or_default()
        });
        let signature = self.signature(&token[..token.len() - DIGITS[4]]);
        let [boot, serial, banner, slot, own] = parts;
        // Compare the whole signature at once, so that the time of the comparison does not depend
        // on how many digits are right.
        if signature ^ own != 0 {
            return None;
        }
        Some(Placement {
            boot: boot as u32,
            serial: serial as u64,
            banner: BannerId::new(banner as u32)?,
            slot: SlotId::new(slot as u32),
        })
    }

    fn signature(&self, text: &str) -> u128 {
        let mut hasher = SipHasher24::new_with_key(&self.0);
        hasher.write(text.as_bytes());
        hasher.finish128().as_u128()
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(…)")
    }
}

fn plain(placement: &Placement) -> String {
    let Placement { boot, serial, banner, slot } = placement;
    let slot = slot.map_or(0, SlotId::number);
    format!("{boot:08x}{serial:016x}{:08x}{slot:08x}", banner.number())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_signed_with_the_key_is_read_with_it() {
        let placement = Placement {
            boot: 3,
            serial: 1 << 40,
            banner: BannerId::new(7).unwrap(),
            slot: SlotId::new(9),
        };
        let (key, other) = (Key::new([1; 16]), Key::new([2; 16]));
        let token = key.sign(&placement);
        assert_eq!(key.read(&token), Some(placement));
        assert_eq!(other.read(&token), None);
        for place in 0..token.len() {
            let mut wrong = token.clone().into_bytes();
            wrong[place] = if wrong[place] == b'0' { b'1' } else { b'0' };
            assert_eq!(key.read(str::from_utf8(&wrong).unwrap()), None, "{place}");
        }
        for wrong in ["", "0", &token[1..], &token.to_uppercase(), &format!("{token}0")] {
            assert_eq!(key.read(wrong), None, "{wrong:?}");
        }
        let nowhere = Placement { slot: None, ..placement };
        assert_eq!(key.read(&key.sign(&nowhere)), Some(nowhere));
    }
}
