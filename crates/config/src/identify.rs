//! The resolved configuration of sessions and client identity.

use std::fmt;
use std::path::PathBuf;

use bywash_token::Keys;

/// The principal to which a request without a proven session is charged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PrincipalKind {
    /// No principal: such a request is charged to nobody.
    Session,
    /// The address of the client.
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

/// The settings by which the session and the client of a request are recognised.
#[derive(Clone, Debug)]
pub struct Identify {
    /// How the session of a request is identified.
    pub session: Session,
    /// The principal to which a request without a proven session is charged.
    pub principal: PrincipalKind,
    /// The session tokens; `None` if they are not used.
    pub token: Option<Token>,
    /// The signals about a client, at most four. The index of a signal is its number in the engine.
    pub signals: Vec<Signal>,
    /// Whether populations of clients are told apart by the heads of their requests.
    pub populations: bool,
    /// The fields that mark a request as a retry.
    pub retries: Vec<RetryHeader>,
}

/// How the session of a request is identified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Session {
    /// Requests have no sessions.
    None,
    /// The application's cookie of this name identifies the session.
    Cookie(String),
    /// A cookie identifies the session. The gateway finds out from answers and requests which
    /// cookie is the application's session cookie.
    Auto,
    /// The session token identifies the session. With this value, the token keys are always set.
    Token,
}

/// The settings of session tokens.
#[derive(Clone, Debug)]
pub struct Token {
    /// The name of the token cookie.
    pub cookie: String,
    /// The path of the file with the signing keys.
    pub file: PathBuf,
    /// The signing keys.
    pub keys: Keys,
}

/// A property of a request that describes its client before the session has proven anything. Any
/// client can forge every signal except [`Signal::Returning`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Signal {
    /// The request has a cookie of this name with a value that is not empty.
    Cookie(String),
    /// The request has a cookie of this name and value.
    CookieValue(String, String),
    /// The request has a header field of this name, in lower case.
    Header(String),
    /// The referrer of the request has this host, in lower case, or a subdomain of it.
    Referrer(String),
    /// The request has a token that proves a recent order.
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

/// A header field that marks a request as a retry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetryHeader {
    /// The name of the field, in lower case.
    pub name: String,
    /// The number above which the value of the field makes a request a retry.
    pub above: u32,
}
