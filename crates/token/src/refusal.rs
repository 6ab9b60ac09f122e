//! Why a token proves nothing.

use thiserror::Error;

/// Why a token proves nothing. None of it is an error to anybody: its bearer is a new visitor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Refusal {
    /// It is no token of this format.
    #[error("it is no token")]
    Malformed,
    /// It names a key that is not among ours: rotated away, or another site's.
    #[error("it was signed with a key that is not here")]
    UnknownKey,
    /// Its signature is not that of its contents.
    #[error("its signature is wrong")]
    Forged,
    /// It is older than a session lives, or from the future.
    #[error("it is too old, or from the future")]
    Stale,
    /// It was given to another session.
    #[error("it is another session's")]
    Foreign,
}

impl Refusal {
    /// Every one, in the order of their numbers.
    pub const ALL: [Self; 5] =
        [Self::Malformed, Self::UnknownKey, Self::Forged, Self::Stale, Self::Foreign];

    /// The word for it in metrics.
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
