//! A request's level, signed, for the application: `high;1800000000;` and a signature.
//!
//! A level decides how much of the machine a request gets inside the application, so the application
//! must know that its gateway has said it. Everybody who can reach it could write a field; only who has
//! the keys can sign one. The time, in seconds since 1970, bounds for how long a text that somebody has
//! seen is of use; a level is signed when its request is sent on, so a lifetime of a minute is plenty.
//!
//! It is not bound to its request: who has both, the application, has no use for another's.
//!
//! **Keys of its own.** The application has the file to verify with, and who can verify an HMAC can sign.
//! So it is not the file of session tokens; and should somebody give the same secret to both, a text
//! signed for one is still none for the other, as each purpose derives its own key.
//!
//! **Text, not bytes,** since people read it in logs and any language can take it apart. One level, one
//! second and one key have one text: the signature covers the characters before it, and base64 whose last
//! bits are not zero is none.
//!
//! ```
//! use bywash_token::{LevelKeys, LevelRefusal, Moment, Secret, Secrets, read_level, sign_level};
//! use bywash_units::Span;
//!
//! let keys = LevelKeys::new(&Secrets::fresh(Secret::from_bytes([7; 32])));
//! let (now, lifetime) = (Moment::from_millis(1_800_000_000_000), Span::from_secs(60));
//! let text = sign_level(&keys, "high", now).expect("it is a level's name");
//! assert!(text.as_bytes().starts_with(b"high;1800000000;"));
//! assert_eq!(read_level(&keys, text.as_bytes(), now, lifetime), Ok("high"));
//! let later = Moment::from_millis(1_800_000_061_000);
//! assert_eq!(read_level(&keys, text.as_bytes(), later, lifetime), Err(LevelRefusal::TooOld));
//! ```
//!
//! Source: HMAC is RFC 2104, with SHA-256; the signature is base64url (RFC 4648 §5) without padding.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bywash_units::Span;
use ring::hmac;
use thiserror::Error;

use crate::claims::Moment;
use crate::keys::{Secret, Secrets};

/// The field that carries it, in lower case.
pub const FIELD: &str = "bywash-level";

/// Most characters of a level's name.
pub const LONGEST_NAME: usize = 32;

/// Bytes of the signature: all that SHA-256 gives, which `ring` compares in constant time.
const TAG: usize = 32;
/// The same as characters.
const TAG_TEXT: usize = (TAG * 4).div_ceil(3);
/// Digits of the largest number of seconds.
const DIGITS: usize = 20;

/// Most characters of what stands in the field.
pub const LONGEST: usize = LONGEST_NAME + 1 + DIGITS + 1 + TAG_TEXT;

/// Whether this can be a level's name: 1 to 32 of a to z, 0 to 9 and `-`.
pub fn is_level_name(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=LONGEST_NAME).contains(&name.len()) && name.bytes().all(plain)
}

/// Keys to sign levels with and to verify them with. The newest signs, each verifies.
#[derive(Clone, Debug)]
pub struct LevelKeys {
    first: hmac::Key,
    second: Option<hmac::Key>,
}

impl LevelKeys {
    /// Made of these, of a file in the format of the keys of session tokens.
    pub fn new(secrets: &Secrets) -> Self {
        let key = |secret: &Secret| secret.derived(b"bywash level: sign");
        let (first, second) = secrets.both();
        Self { first: key(first), second: second.map(key) }
    }

    /// Whether one of them has signed this.
    fn verify(&self, said: &[u8], tag: &[u8]) -> bool {
        let all = std::iter::once(&self.first).chain(&self.second);
        all.into_iter().any(|key| hmac::verify(key, said, tag).is_ok())
    }
}

/// What stands in the field: visible ASCII.
#[derive(Clone, Copy)]
pub struct LevelText {
    bytes: [u8; LONGEST],
    length: usize,
}

impl LevelText {
    /// The characters.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    fn push(&mut self, bytes: &[u8]) {
        let end = self.length + bytes.len();
        self.bytes[self.length..end].copy_from_slice(bytes);
        self.length = end;
    }
}

impl fmt::Debug for LevelText {
    /// Not the signature: whoever has it may use it.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "LevelText({} characters)", self.length)
    }
}

/// Says and signs that a request has this level. `None`: it is no level's name ([`is_level_name`]).
pub fn sign_level(keys: &LevelKeys, level: &str, now: Moment) -> Option<LevelText> {
    if !is_level_name(level) {
        return None;
    }
    let mut text = LevelText { bytes: [0; LONGEST], length: 0 };
    text.push(level.as_bytes());
    text.push(b";");
    let (digits, from) = decimal(now.seconds());
    text.push(&digits[from..]);
    let tag = hmac::sign(&keys.first, text.as_bytes());
    text.push(b";");
    let mut signature = [0; TAG_TEXT];
    let Ok(TAG_TEXT) = URL_SAFE_NO_PAD.encode_slice(tag.as_ref(), &mut signature) else {
        unreachable!("there is room for a whole signature")
    };
    text.push(&signature);
    Some(text)
}

/// The digits of a number, and where they begin.
fn decimal(mut number: u64) -> ([u8; DIGITS], usize) {
    let (mut digits, mut from) = ([b'0'; DIGITS], DIGITS);
    loop {
        from -= 1;
        digits[from] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            return (digits, from);
        }
    }
}

/// Why a text names no level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum LevelRefusal {
    /// It is longer than any can be. Nothing else of it was looked at.
    #[error("it is too long for a level")]
    TooLong,
    /// It is not a level, a time and a signature.
    #[error("it is no level")]
    Malformed,
    /// None of our keys has signed it: somebody has made it up, or the key was rotated away.
    #[error("its signature is none of ours")]
    Forged,
    /// It was signed longer ago than it lives.
    #[error("it is too old")]
    TooOld,
    /// It was signed more than a minute from now: clocks differ.
    #[error("it is from the future")]
    FromTheFuture,
}

impl LevelRefusal {
    /// Every one, in the order of their numbers.
    pub const ALL: [Self; 5] =
        [Self::TooLong, Self::Malformed, Self::Forged, Self::TooOld, Self::FromTheFuture];

    /// The word for it in metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::TooLong => "too_long",
            Self::Malformed => "malformed",
            Self::Forged => "forged",
            Self::TooOld => "too_old",
            Self::FromTheFuture => "from_the_future",
        }
    }
}

/// The level that a text names, if one of these keys has signed it no longer than `lifetime` ago.
/// Whether there is such a level is the caller's to know.
///
/// # Errors
/// Why it names none.
pub fn read_level<'t>(
    keys: &LevelKeys,
    text: &'t [u8],
    now: Moment,
    lifetime: Span,
) -> Result<&'t str, LevelRefusal> {
    if text.len() > LONGEST {
        return Err(LevelRefusal::TooLong);
    }
    let (said, level, signed, tag) = parts(text).ok_or(LevelRefusal::Malformed)?;
    if !keys.verify(said, &tag) {
        return Err(LevelRefusal::Forged);
    }
    match now.since(signed) {
        None => Err(LevelRefusal::FromTheFuture),
        Some(age) if age > lifetime => Err(LevelRefusal::TooOld),
        Some(_) => Ok(level),
    }
}

/// What was signed, the level and the time in it, and the signature.
fn parts(text: &[u8]) -> Option<(&[u8], &str, Moment, [u8; TAG])> {
    let (rest, signature) = text.split_last_chunk::<TAG_TEXT>()?;
    let said = rest.strip_suffix(b";")?;
    let end = said.iter().position(|byte| *byte == b';')?;
    let level = std::str::from_utf8(&said[..end]).ok().filter(|name| is_level_name(name))?;
    let digits = &said[end + 1..];
    let is_number = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    let seconds = std::str::from_utf8(digits).ok().filter(|_| is_number)?.parse().ok()?;
    let mut tag = [0; TAG + 1];
    let length = URL_SAFE_NO_PAD.decode_slice(signature, &mut tag).ok()?;
    let tag = tag[..length].try_into().ok()?;
    Some((said, level, Moment::from_seconds(seconds), tag))
}
