//! Names that come from outside: of requests and of databases. They are short and consist of few
//! different characters, so that a name can be part of a line of the protocol, of a log or of a
//! metric label.

use std::borrow::Borrow;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// The name of the private database that each holder has. See the documentation of the crate.
pub const OWN: &str = "self";

/// The error for text that is not a valid name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotAName {
    /// The text is not a valid name of a request.
    #[error("a request is 1 to 128 letters, digits or any of . _ : -")]
    Request,
    /// The text is not a valid name of a database.
    #[error("a database is 1 to 32 letters, digits or any of _ -")]
    Database,
}

/// The name of a request, given by its gateway or by a server.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RequestId(Arc<str>);

/// The name of a database in the configuration.
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
    /// Returns the name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl DatabaseName {
    /// Returns the name of the private database that each holder has.
    pub fn own() -> Self {
        Self(OWN.into())
    }

    /// Returns the name as text.
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
