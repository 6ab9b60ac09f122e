//! A request's level of service, signed for the application: `high;1800000000;` and a signature.
//!
//! A level decides how much of the machine a request gets inside the application. So the
//! application must know that its gateway has set the level. Any client that can reach the
//! application could write the field, but only a holder of the keys can sign it. The time, in
//! seconds since 1970, limits for how long a copied text can be used. A level is signed when its
//! request is forwarded, so a lifetime of a minute is sufficient.
//!
//! The signature is not bound to its request. Only the application has both, and it has no use for
//! another request's level.
//!
//! **Separate keys.** The application has the key file to verify with, and a process that can
//! verify an HMAC can also sign. So it must not be the key file of session tokens. If an operator
//! uses the same secret for both nevertheless, a text that is signed for one purpose is invalid for
//! the other, because each purpose derives its own key.
//!
//! **Text, not bytes,** because people read it in logs, and any language can parse it. One level,
//! one second and one key have exactly one text. The signature covers the characters before it, and
//! base64 whose last bits are not zero is rejected.
//!
//! ```
//! use bywash_token::{LevelKeys, LevelRefusal, Secret, Secrets, UnixTime, read_level, sign_level};
//! use bywash_units::TimeSpan;
//!
//! let keys = LevelKeys::new(&Secrets::fresh(Secret::from_bytes([7; 32])));
//! let (now, lifetime) = (UnixTime::from_millis(1_800_000_000_000), TimeSpan::from_secs(60));
//! let text = sign_level(&keys, "high", now).expect("it is a level's name");
//! assert!(text.as_bytes().starts_with(b"high;1800000000;"));
//! assert_eq!(read_level(&keys, text.as_bytes(), now, lifetime), Ok("high"));
//! let later = UnixTime::from_millis(1_800_000_061_000);
//! assert_eq!(read_level(&keys, text.as_bytes(), later, lifetime), Err(LevelRefusal::TooOld));
//! ```
//!
//! Source: HMAC is RFC 2104, with SHA-256; the signature is base64url (RFC 4648 §5) without
//! padding.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bywash_units::TimeSpan;
use ring::hmac;
use thiserror::Error;

use crate::claims::UnixTime;
use crate::keys::{Secret, Secrets};

/// The field that carries the level, in lower case.
pub const FIELD: &str = "bywash-level";

/// The maximum number of characters of a level's name.
pub const LONGEST_NAME: usize = 32;

/// The number of bytes of the signature, which is the whole SHA-256 HMAC. `ring` compares it in
/// constant time.
const TAG: usize = 32;
/// The number of characters of the signature.
const TAG_TEXT: usize = (TAG * 4).div_ceil(3);
/// The maximum number of digits of a time in seconds.
const DIGITS: usize = 20;

/// The maximum number of characters of the field's value.
pub const LONGEST: usize = LONGEST_NAME + 1 + DIGITS + 1 + TAG_TEXT;

/// Returns whether this can be a level's name: 1 to 32 characters from a to z, 0 to 9 and `-`.
pub fn is_level_name(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=LONGEST_NAME).contains(&name.len()) && name.bytes().all(plain)
}

/// The keys to sign and to verify levels with. The newer key signs, and both keys verify.
#[derive(Clone, Debug)]
pub struct LevelKeys {
    first: hmac::Key,
    second: Option<hmac::Key>,
}

impl LevelKeys {
    /// Derives the keys from these secrets, whose file has the format of the keys of session
    /// tokens.
    pub fn new(secrets: &Secrets) -> Self {
        let key = |secret: &Secret| secret.derived(b"bywash level: sign");
        let (first, second) = secrets.both();
        Self { first: key(first), second: second.map(key) }
    }

    /// Returns whether one of the keys has signed `payload`.
    fn verify(&self, payload: &[u8], tag: &[u8]) -> bool {
        let all = std::iter::once(&self.first).chain(&self.second);
        all.into_iter().any(|key| hmac::verify(key, payload, tag).is_ok())
    }
}

/// The value of the field [`FIELD`], in visible ASCII characters.
#[derive(Clone, Copy)]
pub struct LevelText {
    bytes: [u8; LONGEST],
    length: usize,
}

impl LevelText {
    /// Returns the characters as bytes.
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
    /// Writes the length of the text, and not the text. A reader of the text could use its
    /// signature.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "LevelText({} characters)", self.length)
    }
}

/// Signs the level of a request. Returns `None` if `level` is not a valid name ([`is_level_name`]).
pub fn sign_level(keys: &LevelKeys, level: &str, now: UnixTime) -> Option<LevelText> {
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

/// Returns the decimal digits of a number, right-aligned, and the index of the first digit.
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

/// The reason why a text does not name a level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum LevelRefusal {
    /// The text is longer than any valid one. Nothing else of the text was examined.
    #[error("it is too long for a level")]
    TooLong,
    /// The text does not consist of a level, a time and a signature.
    #[error("it is not a level")]
    Malformed,
    /// The signature matches none of our keys: the text is invented, or its key was removed at a
    /// rotation.
    #[error("its signature matches none of the keys")]
    Forged,
    /// The text was signed longer ago than its lifetime.
    #[error("it is too old")]
    TooOld,
    /// The text was signed more than a minute in the future: clocks differ.
    #[error("it is from the future")]
    FromTheFuture,
}

impl LevelRefusal {
    /// All variants, in the order of their numbers.
    pub const ALL: [Self; 5] =
        [Self::TooLong, Self::Malformed, Self::Forged, Self::TooOld, Self::FromTheFuture];

    /// Returns the name in metrics.
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

/// Returns the level that a text names, if one of these keys has signed the text at most `lifetime`
/// ago. The caller must check that such a level exists.
///
/// # Errors
/// Returns the reason why the text does not name a level.
pub fn read_level<'t>(
    keys: &LevelKeys,
    text: &'t [u8],
    now: UnixTime,
    lifetime: TimeSpan,
) -> Result<&'t str, LevelRefusal> {
    if text.len() > LONGEST {
        return Err(LevelRefusal::TooLong);
    }
    let (payload, level, signed, tag) = parts(text).ok_or(LevelRefusal::Malformed)?;
    if !keys.verify(payload, &tag) {
        return Err(LevelRefusal::Forged);
    }
    match now.since(signed) {
        None => Err(LevelRefusal::FromTheFuture),
        Some(age) if age > lifetime => Err(LevelRefusal::TooOld),
        Some(_) => Ok(level),
    }
}

/// Splits a text into the signed part, the level, the time, and the signature.
fn parts(text: &[u8]) -> Option<(&[u8], &str, UnixTime, [u8; TAG])> {
    let (rest, signature) = text.split_last_chunk::<TAG_TEXT>()?;
    let payload = rest.strip_suffix(b";")?;
    let end = payload.iter().position(|byte| *byte == b';')?;
    let level = std::str::from_utf8(&payload[..end]).ok().filter(|name| is_level_name(name))?;
    let digits = &payload[end + 1..];
    let is_number = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    let seconds = std::str::from_utf8(digits).ok().filter(|_| is_number)?.parse().ok()?;
    let mut tag = [0; TAG + 1];
    let length = URL_SAFE_NO_PAD.decode_slice(signature, &mut tag).ok()?;
    let tag = tag[..length].try_into().ok()?;
    Some((payload, level, UnixTime::from_seconds(seconds), tag))
}
