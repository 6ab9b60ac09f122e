//! Whose request it is, resolved.

use std::fmt;
use std::path::PathBuf;

use bywash_token::Keys;

use crate::config::Charge;

/// Whose request it is.
#[derive(Clone, Debug)]
pub struct Identify {
    /// What a session is known by.
    pub session: Session,
    /// Who answers for a request without a proven session.
    pub charge: Charge,
    /// Session tokens, if there are any.
    pub token: Option<Token>,
    /// What a request may show of its visitor; a signal's place is the engine's number for it. At
    /// most four.
    pub signals: Vec<Signal>,
    /// By which fields a request says that it is a repetition.
    pub retries: Vec<RetryHeader>,
}

/// What a session is known by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Session {
    /// There are none.
    None,
    /// The application's cookie of this name.
    Cookie(String),
    /// The cookie of the application's that its answers and its clients show to be the session's.
    Auto,
    /// The token itself; then there are keys.
    Token,
}

/// Session tokens.
#[derive(Clone, Debug)]
pub struct Token {
    /// The name of their cookie.
    pub cookie: String,
    /// Where the keys stand.
    pub file: PathBuf,
    /// What they are signed with.
    pub keys: Keys,
}

/// What a request may show of its visitor before anything is proven. All but the last are in
/// anybody's power to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Signal {
    /// A cookie of this name that is not empty.
    Cookie(String),
    /// A cookie of this name and value.
    CookieValue(String, String),
    /// A field of this name, in lower case.
    Header(String),
    /// She comes from this host, in lower case, or from one below it.
    Referrer(String),
    /// A token says that she has ordered of late.
    Returning,
}

impl fmt::Display for Signal {
    /// As the configuration names it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cookie(name) => write!(f, "cookie:{name}"),
            Self::CookieValue(name, value) => write!(f, "cookie:{name}={value}"),
            Self::Header(name) => write!(f, "header:{name}"),
            Self::Referrer(host) => write!(f, "referrer:{host}"),
            Self::Returning => f.write_str("returning"),
        }
    }
}

/// A field by which a request says that it is a repetition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetryHeader {
    /// Its name, in lower case.
    pub name: String,
    /// It is one if the number in it is greater than this.
    pub above: u32,
}
