//! Signs and verifies session tokens.
//!
//! The signature is the whole HMAC of 32 bytes. `ring` compares it in a time that does not depend
//! on where two signatures differ. Before that comparison, only the token's length, its format and
//! the byte that identifies its key are examined. A text that is too long for a token is
//! examined only for its length.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bywash_units::TimeSpan;
use ring::hmac;

use crate::claims::{Claims, Day, FORMAT, HEAD, MOST, Marks, UnixTime};
use crate::keys::{Holder, Key, Keys};
use crate::refusal::Refusal;

/// The number of bytes of the signature.
const TAG: usize = 32;
/// The maximum number of bytes of claims and signature.
const MOST_BYTES: usize = MOST + TAG;

/// The maximum number of characters of a token, which a token with 64 classes has.
pub const LONGEST: usize = (MOST_BYTES * 4).div_ceil(3);

/// A token as it stands in a cookie: letters, digits, `-` and `_`.
#[derive(Clone, Copy)]
pub struct Text {
    bytes: [u8; LONGEST],
    length: usize,
}

impl Text {
    /// Returns the characters as bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

impl fmt::Debug for Text {
    /// Writes the length of the token, and not the token. A reader of the token could use it.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Text({} characters)", self.length)
    }
}

/// Signs claims with the newer key, and returns the token.
pub fn seal(keys: &Keys, claims: &Claims) -> Text {
    let key = keys.first();
    let (claims, length) = claims.write(key.name);
    let mut bytes = [0; MOST_BYTES];
    bytes[..length].copy_from_slice(&claims[..length]);
    let tag = hmac::sign(&key.signs, &claims[..length]);
    bytes[length..length + TAG].copy_from_slice(tag.as_ref());
    let mut text = [0; LONGEST];
    let Ok(length) = URL_SAFE_NO_PAD.encode_slice(&bytes[..length + TAG], &mut text) else {
        unreachable!("there is room for the longest token")
    };
    Text { bytes: text, length }
}

/// A token whose signature is valid, so that a holder of our keys has written its content.
#[derive(Clone, Debug)]
pub struct Opened<'k> {
    claims: Claims,
    key: &'k Key,
    by_first: bool,
}

/// Verifies a token. It may still be too old, or belong to another session; see [`Opened::proves`].
///
/// # Errors
/// Returns [`Refusal::Malformed`], [`Refusal::UnknownKey`] or [`Refusal::Forged`].
pub fn open<'k>(keys: &'k Keys, text: &[u8]) -> Result<Opened<'k>, Refusal> {
    if text.len() > LONGEST {
        return Err(Refusal::Malformed);
    }
    let mut bytes = [0; MOST_BYTES + 3];
    let length = URL_SAFE_NO_PAD.decode_slice(text, &mut bytes).map_err(|_| Refusal::Malformed)?;
    let (claims, tag) = bytes[..length].split_last_chunk::<TAG>().ok_or(Refusal::Malformed)?;
    let [FORMAT, name, ..] = *claims else { return Err(Refusal::Malformed) };
    if claims.len() < HEAD {
        return Err(Refusal::Malformed);
    }
    let mut refusal = Refusal::UnknownKey;
    for (key, by_first) in keys.named(name) {
        if hmac::verify(&key.signs, claims, tag).is_ok() {
            let claims = Claims::read(claims).ok_or(Refusal::Malformed)?;
            return Ok(Opened { claims, key, by_first });
        }
        refusal = Refusal::Forged;
    }
    Err(refusal)
}

impl Opened<'_> {
    /// Returns the classes that the token proves for the session of this holder. `ttl` is the
    /// lifetime of a token.
    ///
    /// # Errors
    /// Returns [`Refusal::Foreign`] or [`Refusal::Stale`].
    pub fn proves(
        &self,
        now: UnixTime,
        ttl: TimeSpan,
        holder: &Holder<'_>,
    ) -> Result<&Marks, Refusal> {
        if self.key.session(holder) != self.claims.session {
            return Err(Refusal::Foreign);
        }
        match now.since(self.claims.issued) {
            Some(age) if age <= ttl => Ok(&self.claims.served),
            Some(_) | None => Err(Refusal::Stale),
        }
    }

    /// Returns whether the token should be replaced although it is still valid. That is so if more
    /// than half of its lifetime is over, or if it was signed with the older key.
    pub fn wants_renewal(&self, now: UnixTime, ttl: TimeSpan) -> bool {
        !self.by_first || now.since(self.claims.issued).is_none_or(|age| age * 2 > ttl)
    }

    /// Returns the day of the visitor's last order, if the order is not longer ago than `within`.
    /// The day does not depend on the session, and stays valid after the session's end.
    pub fn ordered(&self, now: UnixTime, within: TimeSpan) -> Option<Day> {
        self.claims.ordered.filter(|day| day.is_within(within, now))
    }

    /// Returns the name of the session that the token belongs to.
    pub const fn session(&self) -> crate::SessionName {
        self.claims.session
    }
}
