//! The keys, and the file that they stand in.
//!
//! The first key signs, both verify. So a key can be exchanged while tokens are about: a new first
//! line makes the former first line the second, and tokens that it signed are good until they are
//! replaced. Every gateway with the same file can read what the others have signed.
//!
//! A key is used for three things: to sign, to name sessions, and to be known by. Each gets a key of
//! its own that is derived from it, so that nothing said for one purpose means anything for another.

use std::fmt;

use ring::hmac;
use thiserror::Error;

use crate::claims::SessionName;

/// 32 random bytes. Whoever has them can make tokens.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret([u8; 32]);

impl Secret {
    /// Of bytes that nobody can guess.
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// 64 hexadecimal digits.
    fn parse(line: &str) -> Option<Self> {
        let (pairs, rest) = line.as_bytes().as_chunks::<2>();
        let mut bytes = [0; 32];
        if pairs.len() != bytes.len() || !rest.is_empty() {
            return None;
        }
        let digit = |byte: u8| char::from(byte).to_digit(16);
        for (byte, pair) in bytes.iter_mut().zip(pairs) {
            *byte = (digit(pair[0])? << 4 | digit(pair[1])?) as u8;
        }
        Some(Self(bytes))
    }

    /// A key for one purpose, which says nothing about those for others.
    pub(crate) fn derived(&self, purpose: &[u8]) -> hmac::Key {
        let root = hmac::Key::new(hmac::HMAC_SHA256, &self.0);
        hmac::Key::new(hmac::HMAC_SHA256, hmac::sign(&root, purpose).as_ref())
    }

    fn line(&self) -> String {
        let digits = self.0.iter().flat_map(|byte| [byte >> 4, byte & 0xf]);
        let digit = |four: u8| char::from(b"0123456789abcdef"[usize::from(four)]);
        digits.map(digit).chain(['\n']).collect()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Secret(..)")
    }
}

/// What a file of keys holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Secrets {
    first: Secret,
    second: Option<Secret>,
}

/// What is wrong with a file of keys. Nothing of a key is in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum KeyFault {
    /// There is no line with a key.
    #[error("there is no key in it: `bywash token-keys` prints one")]
    None,
    /// There are more than two.
    #[error("there is a third key in line {line}: two are enough, the new one and the one before")]
    TooMany {
        /// Of the file, from 1.
        line: usize,
    },
    /// A line is none.
    #[error("line {line} is no key: 64 hexadecimal digits, as `bywash token-keys` prints them")]
    NoKey {
        /// Of the file, from 1.
        line: usize,
    },
    /// Both are the same.
    #[error("the two keys are the same: a key is exchanged for another")]
    Same,
}

impl Secrets {
    /// One, for a new file.
    pub const fn fresh(secret: Secret) -> Self {
        Self { first: secret, second: None }
    }

    /// Of a file: one or two lines of 64 hexadecimal digits, the newer one first. Empty lines and
    /// those that begin with `#` are nothing.
    pub fn parse(text: &str) -> Result<Self, KeyFault> {
        let mut found: [Option<Secret>; 2] = [None, None];
        let lines = text.lines().enumerate().map(|(number, line)| (number + 1, line));
        for (line, text) in lines.filter(|(_, text)| is_key(text)) {
            let secret = Secret::parse(text.trim()).ok_or(KeyFault::NoKey { line })?;
            let place = found.iter_mut().find(|place| place.is_none());
            *place.ok_or(KeyFault::TooMany { line })? = Some(secret);
        }
        match found {
            [None, _] => Err(KeyFault::None),
            [Some(first), Some(second)] if first == second => Err(KeyFault::Same),
            [Some(first), second] => Ok(Self { first, second }),
        }
    }

    /// The text of a file with a new key that signs; the one that has signed so far still verifies,
    /// and the one before that is gone. Lines that are no keys stay.
    ///
    /// # Errors
    /// What is wrong with the file.
    pub fn rotated(text: &str, fresh: &Secret) -> Result<String, KeyFault> {
        Self::parse(text)?;
        let (mut rotated, mut keys) = (String::new(), 0);
        for line in text.lines() {
            keys += usize::from(is_key(line));
            match (is_key(line), keys) {
                (false, _) => {}
                (true, 1) => rotated.push_str(&fresh.line()),
                (true, _) => continue,
            }
            rotated.push_str(line);
            rotated.push('\n');
        }
        Ok(rotated)
    }

    /// The one that signs, and the one before.
    pub(crate) const fn both(&self) -> (&Secret, Option<&Secret>) {
        (&self.first, self.second.as_ref())
    }

    /// As a file.
    pub fn to_text(&self) -> String {
        let mut text = String::from(
            "# Keys of bywash's, for session tokens or for levels, never for both. Whoever reads\n\
             # this can sign. The first signs; the second, the one before, still verifies.\n",
        );
        text.push_str(&self.first.line());
        text.extend(self.second.iter().map(Secret::line));
        text
    }
}

/// Whether a line of a file is to be a key.
fn is_key(line: &str) -> bool {
    let line = line.trim();
    !line.is_empty() && !line.starts_with('#')
}

/// Whose a token is.
#[derive(Clone, Copy, Debug)]
pub enum Holder<'a> {
    /// The session with this value of the application's cookie.
    Cookie(&'a [u8]),
    /// Its own: the token is the session.
    Itself(SessionName),
}

/// Keys to sign with and to verify with.
#[derive(Clone, Debug)]
pub struct Keys {
    first: Key,
    second: Option<Key>,
}

/// What is made of one secret.
#[derive(Clone, Debug)]
pub(crate) struct Key {
    /// What it is known by. It says nothing about the key, and two may have the same.
    pub(crate) name: u8,
    pub(crate) signs: hmac::Key,
    names_sessions: hmac::Key,
}

impl Key {
    fn of(secret: &Secret) -> Self {
        let root = hmac::Key::new(hmac::HMAC_SHA256, &secret.0);
        Self {
            name: hmac::sign(&root, b"bywash token: name").as_ref()[0],
            signs: secret.derived(b"bywash token: sign"),
            names_sessions: secret.derived(b"bywash token: session"),
        }
    }

    pub(crate) fn session(&self, holder: &Holder<'_>) -> SessionName {
        match holder {
            Holder::Cookie(cookie) => {
                let tag = hmac::sign(&self.names_sessions, cookie);
                let first = tag.as_ref().first_chunk().expect("SHA-256 gives 32 bytes");
                SessionName(*first)
            }
            Holder::Itself(name) => *name,
        }
    }
}

impl Keys {
    /// Made of these.
    pub fn new(secrets: &Secrets) -> Self {
        Self { first: Key::of(&secrets.first), second: secrets.second.as_ref().map(Key::of) }
    }

    /// What the session of this holder is called in tokens that are signed now.
    pub fn session(&self, holder: &Holder<'_>) -> SessionName {
        self.first.session(holder)
    }

    /// Whether one of them is made of one of these: then whoever has these can make tokens.
    pub fn are_made_of(&self, secrets: &Secrets) -> bool {
        let tag = |key: &Key| hmac::sign(&key.signs, b"");
        let ours = [Some(&self.first), self.second.as_ref()];
        let is_ours =
            |key: &Key| ours.iter().flatten().any(|one| tag(one).as_ref() == tag(key).as_ref());
        let (first, second) = secrets.both();
        is_ours(&Key::of(first)) || second.is_some_and(|second| is_ours(&Key::of(second)))
    }

    pub(crate) const fn first(&self) -> &Key {
        &self.first
    }

    /// Those of this name, and whether each is the one that signs.
    pub(crate) fn named(&self, name: u8) -> impl Iterator<Item = (&Key, bool)> {
        let both = [(Some(&self.first), true), (self.second.as_ref(), false)];
        let there = both.into_iter().filter_map(|(key, first)| Some((key?, first)));
        there.filter(move |(key, _)| key.name == name)
    }
}
