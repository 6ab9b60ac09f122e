//! The resolved configuration of sessions and client identity.

use std::fmt;
use std::path::PathBuf;

use bywash_token::Keys;

/// The principal that is charged for a request without a proven session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PrincipalKind {
    /// No principal.
    Session,
    /// The peer address.
    Address,
}

impl PrincipalKind {
    /// Returns the name used in the configuration file.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Session => "session",
            Self::Address => "address",
        }
    }
}

/// How the session and the client of a request are recognised.
#[derive(Clone, Debug)]
pub struct Identify {
    /// The identifier of a session.
    pub session: Session,
    /// The principal that is charged for a request without a proven session.
    pub principal: PrincipalKind,
    /// Session tokens, if they are used.
    pub token: Option<Token>,
    /// Signals about a client, at most four. The index of a signal is its number in the engine.
    pub signals: Vec<Signal>,
    /// The fields that mark a request as a retry.
    pub retries: Vec<RetryHeader>,
}

/// The identifier of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Session {
    /// Sessions are not used.
    None,
    /// The application's cookie of this name.
    Cookie(String),
    /// The application's cookie that its answers and its clients show to be the session cookie.
    Auto,
    /// The token itself. Its keys are then set.
    Token,
}

/// Session tokens.
#[derive(Clone, Debug)]
pub struct Token {
    /// The name of the token cookie.
    pub cookie: String,
    /// The path of the key file.
    pub file: PathBuf,
    /// The signing keys.
    pub keys: Keys,
}

/// A property of a request that describes its client before anything is proven. Any client can send
/// all of these except the last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Signal {
    /// A cookie of this name with a value that is not empty.
    Cookie(String),
    /// A cookie of this name and value.
    CookieValue(String, String),
    /// A field of this name, in lower case.
    Header(String),
    /// A referrer with this host, in lower case, or with a subdomain of it.
    Referrer(String),
    /// A token that proves a recent order.
    Returning,
}

impl fmt::Display for Signal {
    /// Writes the signal as the configuration file has it.
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

/// A field that marks a request as a retry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetryHeader {
    /// The name of the field, in lower case.
    pub name: String,
    /// The request is a retry if the number in the field is greater than this.
    pub above: u32,
}
