//! The service level of a request.

use serde::Serialize;

/// A service level, which determines how many threads one request may use at a time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// One thread: type 0 in the paper.
    #[default]
    Low,
    /// Several threads: type 1 in the paper.
    High,
}

impl Level {
    /// Both levels, in an order in which `ALL[level.index()] == level`.
    pub const ALL: [Self; 2] = [Self::Low, Self::High];

    /// Returns the name of the level in the pool, in headers and in statistics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::High => "high",
        }
    }

    /// Returns the level with this name.
    pub(crate) fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.name() == name)
    }

    /// Returns the index of the level in [`Level::ALL`].
    pub const fn index(self) -> usize {
        self as usize
    }
}
