//! Names that arrive from outside: short, of few characters, so that they can stand in a line, a log and a label.

use std::borrow::Borrow;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// The database of whoever has the lease, see the head of the crate.
pub const OWN: &str = "self";

/// Text that is no name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotAName {
    /// As a request's.
    #[error("a request is 1 to 128 letters, digits or any of . _ : -")]
    Request,
    /// As a database's.
    #[error("a database is 1 to 32 letters, digits or any of _ -")]
    Database,
}

/// The name of a request, as its gateway or server gave it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RequestId(Arc<str>);

/// The name of a database, as the operator gave it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DatabaseName(Arc<str>);

fn is_of(text: &str, longest: usize, marks: &[u8]) -> bool {
    let fits = |byte: &u8| byte.is_ascii_alphanumeric() || marks.contains(byte);
    (1..=longest).contains(&text.len()) && text.as_bytes().iter().all(fits)
}

impl FromStr for RequestId {
    type Err = NotAName;

    fn from_str(text: &str) -> Result<Self, NotAName> {
        if is_of(text, 128, b"._:-") { Ok(Self(text.into())) } else { Err(NotAName::Request) }
    }
}

impl FromStr for DatabaseName {
    type Err = NotAName;

    fn from_str(text: &str) -> Result<Self, NotAName> {
        if is_of(text, 32, b"_-") { Ok(Self(text.into())) } else { Err(NotAName::Database) }
    }
}

impl RequestId {
    /// Its letters.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl DatabaseName {
    /// The database of whoever has the lease.
    pub fn own() -> Self {
        Self(OWN.into())
    }

    /// Its letters.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for RequestId {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for DatabaseName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for DatabaseName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
