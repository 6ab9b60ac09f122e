//! The reasons why a session token proves nothing.

use thiserror::Error;

/// The reason why a session token proves nothing. None of these reasons is an error: the bearer is
/// treated as a new visitor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Refusal {
    /// The text is not a token of this format.
    #[error("it is not a token")]
    Malformed,
    /// The token names an unknown key: a key that was removed at a rotation, or a key of another
    /// site.
    #[error("it was signed with an unknown key")]
    UnknownKey,
    /// The signature does not match the content.
    #[error("its signature is wrong")]
    Forged,
    /// The token is older than a session can be, or its time is in the future.
    #[error("it is too old, or from the future")]
    Stale,
    /// The token belongs to another session.
    #[error("it belongs to another session")]
    Foreign,
}

impl Refusal {
    /// All variants, in the order of their numbers.
    pub const ALL: [Self; 5] =
        [Self::Malformed, Self::UnknownKey, Self::Forged, Self::Stale, Self::Foreign];

    /// Returns the reason's name in metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Malformed => "malformed",
            Self::UnknownKey => "unknown_key",
            Self::Forged => "forged",
            Self::Stale => "stale",
            Self::Foreign => "foreign",
        }
    }
}
