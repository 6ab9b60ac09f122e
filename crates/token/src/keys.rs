//! The keys for tokens, and the file that contains them.
//!
//! A file has one or two keys. The first key signs, and both verify. Therefore a key can be rotated
//! while tokens are in use. A new first line makes the former first key the second one, and the
//! tokens that it signed stay valid until they are replaced. Every gateway with the same file can
//! verify the tokens of the others.
//!
//! A secret has three uses: to sign tokens, to name sessions, and to be identified. Each use has a
//! key of its own that is derived from the secret, so that a value made for one use has no meaning
//! for another.

use std::fmt;

use ring::hmac;
use thiserror::Error;

use crate::claims::SessionName;

/// A secret of 32 random bytes. Anyone who has it can make tokens.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret([u8; 32]);

impl Secret {
    /// Creates a secret from unpredictable bytes.
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Parses 64 hexadecimal digits.
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

    /// Derives the key for one purpose. It reveals nothing about the keys for other purposes.
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

/// The secrets of a key file: the one that signs, and the previous one if the file has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Secrets {
    first: Secret,
    second: Option<Secret>,
}

/// The reason why a key file is refused. It contains nothing of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum KeyFileError {
    /// The file has no line with a key.
    #[error("the file contains no key: `bywash token-keys` prints one")]
    None,
    /// The file has more than two keys.
    #[error(
        "line {line} has a third key: at most two are allowed, the new one and the previous one"
    )]
    TooMany {
        /// The number of the line in the file, counted from 1.
        line: usize,
    },
    /// A line is not a key.
    #[error(
        "line {line} is not a key: it must be 64 hexadecimal digits, as `bywash token-keys` prints \
         them"
    )]
    NoKey {
        /// The number of the line in the file, counted from 1.
        line: usize,
    },
    /// Both keys are the same.
    #[error("the two keys are the same: replace the first one by a new key")]
    Same,
}

impl Secrets {
    /// Creates secrets with a single key, for a new file.
    pub const fn fresh(secret: Secret) -> Self {
        Self { first: secret, second: None }
    }

    /// Parses a file: one or two lines of 64 hexadecimal digits, the newer key first. Empty lines
    /// and lines that begin with `#` are ignored.
    pub fn parse(text: &str) -> Result<Self, KeyFileError> {
        let mut found: [Option<Secret>; 2] = [None, None];
        let lines = text.lines().enumerate().map(|(number, line)| (number + 1, line));
        for (line, text) in lines.filter(|(_, text)| is_key(text)) {
            let secret = Secret::parse(text.trim()).ok_or(KeyFileError::NoKey { line })?;
            let place = found.iter_mut().find(|place| place.is_none());
            *place.ok_or(KeyFileError::TooMany { line })? = Some(secret);
        }
        match found {
            [None, _] => Err(KeyFileError::None),
            [Some(first), Some(second)] if first == second => Err(KeyFileError::Same),
            [Some(first), second] => Ok(Self { first, second }),
        }
    }

    /// Returns the text of the file with `fresh` as the key that signs. The key that has signed so
    /// far still verifies, and the one before it is removed. Lines that are not keys stay
    /// unchanged.
    ///
    /// # Errors
    /// Returns an error if the file has a fault.
    pub fn rotated(text: &str, fresh: &Secret) -> Result<String, KeyFileError> {
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

    /// Returns the secret that signs, and the previous one if there is one.
    pub(crate) const fn both(&self) -> (&Secret, Option<&Secret>) {
        (&self.first, self.second.as_ref())
    }

    /// Returns the text of a key file with these secrets.
    pub fn to_text(&self) -> String {
        let mut text = String::from(
            "# Keys of bywash for session tokens or for levels, never for both. Anyone who can \
             read\n# this file can sign. The first key signs; the second, previous one still \
             verifies.\n",
        );
        text.push_str(&self.first.line());
        text.extend(self.second.iter().map(Secret::line));
        text
    }
}

/// Returns whether a line of a key file must contain a key: it is neither empty nor a comment.
fn is_key(line: &str) -> bool {
    let line = line.trim();
    !line.is_empty() && !line.starts_with('#')
}

/// The session that holds a token.
#[derive(Clone, Copy, Debug)]
pub enum Holder<'a> {
    /// The session with this value of the application's session cookie.
    Cookie(&'a [u8]),
    /// The session that the token itself identifies.
    Itself(SessionName),
}

/// The keys to sign and to verify session tokens with. The newer key signs, and both keys verify.
#[derive(Clone, Debug)]
pub struct Keys {
    first: Key,
    second: Option<Key>,
}

/// The keys that are derived from one secret.
#[derive(Clone, Debug)]
pub(crate) struct Key {
    /// The byte that identifies the key. It reveals nothing about the key, and two keys may have
    /// the same byte.
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
    /// Derives the keys from these secrets.
    pub fn new(secrets: &Secrets) -> Self {
        Self { first: Key::of(&secrets.first), second: secrets.second.as_ref().map(Key::of) }
    }

    /// Returns the name of this holder's session in tokens that are signed now.
    pub fn session(&self, holder: &Holder<'_>) -> SessionName {
        self.first.session(holder)
    }

    /// Returns whether one of the keys is derived from one of these secrets. If so, anyone with
    /// these secrets can make tokens.
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

    /// Returns the keys with this identifying byte. The boolean says whether the key is the one
    /// that signs.
    pub(crate) fn named(&self, name: u8) -> impl Iterator<Item = (&Key, bool)> {
        let both = [(Some(&self.first), true), (self.second.as_ref(), false)];
        let there = both.into_iter().filter_map(|(key, first)| Some((key?, first)));
        there.filter(move |(key, _)| key.name == name)
    }
}
