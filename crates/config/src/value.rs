//! The value of a key, after it is known to be of the key's kind.

use std::net::SocketAddr;

use bywash_units::TimeSpan;
use toml::Spanned;

use crate::listen::AdminAddress;
use crate::words::Worded;

/// The value of a key. The variant depends on the key's [`ValueKind`](crate::kind::ValueKind).
#[derive(Clone, Debug)]
pub(crate) enum Value {
    /// A whole number, or a size in bytes.
    Whole(u64),
    Number(f64),
    TimeSpan(TimeSpan),
    /// A word, or free text.
    Text(String),
    Texts(Vec<Spanned<String>>),
    Truth(bool),
    Address(SocketAddr),
    Admin(AdminAddress),
}

/// Accessors by type. Each panics on a value of another type. That is a bug in this crate, because
/// the kind of the key decides the type, both for the reader and for the caller. The first test
/// that reads the key finds it.
impl Value {
    pub(crate) fn whole(&self) -> u64 {
        match self {
            Self::Whole(whole) => *whole,
            other => unreachable!("{other:?} is not a whole number"),
        }
    }

    pub(crate) fn number(&self) -> f64 {
        match self {
            Self::Number(number) => *number,
            other => unreachable!("{other:?} is not a number"),
        }
    }

    pub(crate) fn span(&self) -> TimeSpan {
        match self {
            Self::TimeSpan(span) => *span,
            other => unreachable!("{other:?} is not a duration"),
        }
    }

    pub(crate) fn text(&self) -> &str {
        match self {
            Self::Text(text) => text,
            other => unreachable!("{other:?} is not a text"),
        }
    }

    pub(crate) fn word<T: Worded>(&self) -> T {
        T::from_word(self.text())
    }

    pub(crate) fn texts(&self) -> &[Spanned<String>] {
        match self {
            Self::Texts(texts) => texts,
            other => unreachable!("{other:?} is not a list"),
        }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        match self {
            Self::Address(address) => *address,
            other => unreachable!("{other:?} is not an address"),
        }
    }

    pub(crate) fn admin(&self) -> &AdminAddress {
        match self {
            Self::Admin(address) => address,
            other => unreachable!("{other:?} is not an address for operators"),
        }
    }

    pub(crate) fn truth(&self) -> bool {
        match self {
            Self::Truth(truth) => *truth,
            other => unreachable!("{other:?} is neither true nor false"),
        }
    }

    /// Returns the value in the syntax that the engine's catalogue parses. The catalogue has no
    /// lists and no addresses.
    pub(crate) fn parameter(&self) -> String {
        match self {
            Self::Whole(whole) => whole.to_string(),
            Self::Number(number) => number.to_string(),
            Self::TimeSpan(span) => format!("{}ns", span.as_nanos()),
            Self::Text(text) => text.clone(),
            Self::Texts(_) | Self::Truth(_) | Self::Address(_) | Self::Admin(_) => {
                unreachable!("{self:?} is not the value of a parameter")
            }
        }
    }
}
